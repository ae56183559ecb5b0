"""A market that orders through the landing folder like anyone else, and a tour of the answers."""
