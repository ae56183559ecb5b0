"""Dead letters, for admins: the records that could not land, and why."""
