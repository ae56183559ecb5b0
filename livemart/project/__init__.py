"""What the analyst wrote; the only room that imports dbt."""
