"""Where records come from: files below the landing folder, and logs of numbered records."""
