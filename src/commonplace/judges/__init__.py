"""Does this memory answer that question? One file is one judge."""
