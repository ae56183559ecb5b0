"""One module per SQL shape: how a change passes through it."""
