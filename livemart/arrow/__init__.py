"""Rows in memory: equality, exact sums, types, times, change sets."""
