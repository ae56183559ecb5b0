"""Settings of a source for a record log."""
