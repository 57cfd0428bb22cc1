"""OpenWOP's memory layer: a MemoryAdapter bound to a run, and what is served of it."""

from commonplace.dialects.openwop.adapter import MemoryAdapter
from commonplace.dialects.openwop.discovery import document
from commonplace.dialects.openwop.faults import envelope
from commonplace.dialects.openwop.operations import OpenWop

__all__ = ["MemoryAdapter", "OpenWop", "document", "envelope"]
