"""Looking after a store."""
