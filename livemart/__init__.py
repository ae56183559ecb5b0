"""livemart: plain-SELECT dbt models on Spark, refreshed incrementally, equal to the batch."""
