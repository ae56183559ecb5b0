"""The steps of a query: each answers how a change passes through it."""
