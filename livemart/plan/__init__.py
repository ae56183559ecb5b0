"""Step 2, plan: how each model can be refreshed; pure SQL analysis, knows no Spark."""
