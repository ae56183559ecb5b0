"""Holds the limits of work: from how many rows on another way is taken.

Used by every room. Each was set by a measurement, or guards memory. Which lane a change set takes
is a setting, `small_lane_rows`; limits of a single file, filter or answer stay where that is made.
"""

from __future__ import annotations

# ADR-0008: a larger region costs more to join with than a full recomputation; it is counted where
# the keys are known anyway, before any input is read.
MOST_REGION_KEYS = 1_000_000
# Guards the length of a region: a key with more intervals is covered by one, which only widens it.
MOST_INTERVALS_OF_A_KEY = 8
# So many rows of an input cost Spark less than it costs to leave some of them out.
FEW_INPUT_ROWS = 2_000
# A view of so many rows, made once, costs less than a new one for every batch.
FEW_LOOKUP_ROWS = 5_000
# Guards the driver's memory: a larger table is read by Spark, and not compared in Arrow.
ROWS_IN_MEMORY = 400_000

# Guards the driver's memory: a million changed rows, old and new images, take about 1 GB of it.
MOST_CHANGED_ROWS = 2_000_000

# Microseconds. Running totals look so far back for the last row before a change; a key without one
# there starts from its frames, which costs as much as they hold.
LOOK_BACK = 6 * 3_600_000_000
# Microseconds. Keys that changed longer before the newest change are read apart from the others:
# one late key would make the frames of every key be read from there on.
FRESH = 3_600_000_000

# More rows than this are worth generated code; a statement over fewer takes half the time without.
FEW_STATEMENT_ROWS = 100_000
# Rows times the places of a statement that read them: each join handles the rows once more. Above
# this limit that takes longer without generated code than the code takes to be made.
FEW_HANDLED_ROWS = 200_000
# The second compiler of the JVM does not earn its time where all tables together have so few rows.
FEW_WAREHOUSE_ROWS = 1_000_000
# A table of at most so many rows is handed to a test as Arrow rows: Spark's own first read of a
# fresh commit takes 0.7 s.
FEW_TESTED_ROWS = 200_000
# Above this a test in full is cheaper than a view of the rows that changed.
MOST_NEW_ROWS = 400_000

# Guards the stack: records of JSON and of Avro that nest deeper are refused.
MAX_NESTING = 64
