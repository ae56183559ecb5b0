"""Spark and its surroundings: session, jars, catalog, Connect, views, its commits."""
