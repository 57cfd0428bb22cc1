"""Memory over the Model Context Protocol: one table of tools for each set, spoken on stdio and over HTTP."""
