"""Keeps the project as it was compiled and planned, from one command to the next."""
