"""Commands, flags, signals, and how they end."""
