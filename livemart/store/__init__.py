"""The serving store as a database."""
