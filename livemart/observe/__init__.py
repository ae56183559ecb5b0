"""Watching a run."""
