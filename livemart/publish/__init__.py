"""The snapshot log."""
