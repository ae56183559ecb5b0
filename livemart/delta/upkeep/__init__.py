"""Commits and removals that change no row: bounds, small files, retention, old files."""
