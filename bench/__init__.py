"""Benchmarks: what the figures of the README are measured with."""
