"""The audit chain, and who may read it."""
