"""How each model can be refreshed: pure SQL analysis, no Spark."""
