"""The hooks of a project: their statements, the tables that they fill, and those that end a run."""
