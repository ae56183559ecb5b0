"""Step 3, refresh: each model is moved by the net change of its inputs."""
