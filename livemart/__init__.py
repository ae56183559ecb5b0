"""livemart: plain-SELECT dbt models on Spark, refreshed incrementally, equal to the batch."""

__version__ = "0.1.0"
