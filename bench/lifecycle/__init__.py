"""What consolidation and the dreamer do to a memory in half a year, and what they cost whoever recalls meanwhile."""
