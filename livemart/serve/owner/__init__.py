"""The owner's questions: metrics, top dishes, trend, late orders."""
