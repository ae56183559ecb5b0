"""Step 5, publish: a snapshot goes into the serving store in one transaction."""
