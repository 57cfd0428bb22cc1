"""A memory in the shape that a framework expects: one file each, and the only one that imports that framework."""
