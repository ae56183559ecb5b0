"""What a source says of a record log."""
