"""Land, refresh every model, check, publish one snapshot: the steps of a run, in order."""
