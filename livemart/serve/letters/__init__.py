"""Dead letters, for admins: what could not land, and why."""
