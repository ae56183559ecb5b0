"""State that survives a crash: snapshot log, checkpoint, lock, counts."""
