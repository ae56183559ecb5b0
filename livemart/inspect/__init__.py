"""Looks that change nothing: status, doctor, verify, plan."""
