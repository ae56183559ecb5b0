"""Who asks: tokens, sessions, callers."""
