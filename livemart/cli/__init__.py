"""The command line: commands, flags, signals."""
