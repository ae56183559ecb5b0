"""The landing folder: which files there are, what they hold, what is wrong with them."""
