"""The temporal knowledge graph."""
