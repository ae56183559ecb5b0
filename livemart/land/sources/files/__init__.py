"""The landing folder: its files, their content and their mistakes."""
