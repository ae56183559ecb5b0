"""A market that orders through the landing folder as every writer does, and a tour of it."""
