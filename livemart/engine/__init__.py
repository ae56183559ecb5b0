"""What runs on Spark and Delta."""
