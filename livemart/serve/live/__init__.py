"""The newest snapshot, and who waits for it."""
