"""Step 4, check: the data tests, on what changed."""
