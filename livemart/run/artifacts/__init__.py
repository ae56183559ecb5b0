"""Writes dbt's artifacts of what was really done, for the tools that read them."""
