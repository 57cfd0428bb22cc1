"""Runs that see memory as it was when they began, and what they note for themselves."""
