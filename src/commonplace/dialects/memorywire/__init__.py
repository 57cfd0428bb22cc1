"""memorywire, the protocol that the SDK, the HTTP API and our own MCP tools speak."""

from commonplace.dialects.memorywire.operations import Memorywire
from commonplace.dialects.memorywire.records import to_wire

__all__ = ["Memorywire", "to_wire"]
