"""Records that come in by HTTP, for who has a token of the source."""
