"""One module per SQL shape."""
