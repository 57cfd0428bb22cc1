"""Trains the encoder that ships in the package, and measures it."""
