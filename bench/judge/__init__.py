"""Trains the judge, fits the relevance of hits, and measures both."""
