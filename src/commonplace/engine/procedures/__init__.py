"""Procedures: memories that are state machines, and can be run."""
