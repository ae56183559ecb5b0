"""Pull and push queries over the serving store, and the owner's page."""
