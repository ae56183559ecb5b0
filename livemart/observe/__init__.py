"""Progress and log events."""
