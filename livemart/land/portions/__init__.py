"""Landing of more records than memory should hold, by the driver alone."""
