"""Text to vectors. One file is one embedder; the default works offline from what is installed."""
