"""A memory in the shape that a framework expects: one file each, which imports that framework and nothing else does."""
