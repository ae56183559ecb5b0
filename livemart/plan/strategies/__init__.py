"""How a model can be moved: signed, region, running."""
