"""The server: pull and push queries over the serving store."""
