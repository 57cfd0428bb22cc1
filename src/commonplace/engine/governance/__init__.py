"""Writes that wait for a human."""
