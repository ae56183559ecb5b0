"""The serving store as a database, and reading it."""
