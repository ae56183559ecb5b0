"""How much of the server each caller may take."""
