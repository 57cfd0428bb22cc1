"""OpenWOP's memory layer: a MemoryAdapter bound to a run, and what is served of it."""

from commonplace.dialects.openwop.adapter import MemoryAdapter
from commonplace.dialects.openwop.operations import OpenWop, discovery_document, envelope

__all__ = ["MemoryAdapter", "OpenWop", "discovery_document", "envelope"]
