"""Declarations of a project to livemart, and the mistakes in them."""
