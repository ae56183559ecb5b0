"""Which data files a filter may skip: the bounds that are written, and those that are trusted."""
