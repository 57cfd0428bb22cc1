"""Memories one by one: written, read, replaced, merged, forgotten, expired."""
