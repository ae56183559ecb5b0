"""What a project declares to livemart, and what is wrong with it."""
