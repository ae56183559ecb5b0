"""Step 4, check: the data tests, on the rows that changed."""
