"""What a query does, step by step: each step answers how a change passes through it."""
