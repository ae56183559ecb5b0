"""Landing of more records than the driver holds, by Spark."""
