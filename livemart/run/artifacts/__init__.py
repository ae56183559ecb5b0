"""Writes dbt's artifacts of a run, for the tools that read them."""
