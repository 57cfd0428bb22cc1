"""What the commands share. Imports nothing: `commonplace mcp` passes through here while its client waits."""
