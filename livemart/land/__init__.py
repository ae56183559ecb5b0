"""Step 1, land: files become rows of a Delta table, once."""
