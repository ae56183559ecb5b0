"""What the analyst wrote."""
