"""The starter makes a first project over sample data, and looks at a dbt project that is there."""
