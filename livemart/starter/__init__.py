"""The starter makes a first project over sample data."""
