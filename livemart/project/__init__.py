"""The project as the analyst wrote it; the only room that imports dbt."""
