"""Records that could not land: dead letters with a reason, and schema drift."""
