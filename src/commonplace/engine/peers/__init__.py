"""Other agents: who they are to us, how far they are trusted, and what they are told."""
