"""One module for each system, each with a class `Adapter`; what they are called, and where they run."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bench.peers.systems.base import System


@dataclass(slots=True, frozen=True)
class Entry:
    title: str
    module: str
    package: str  # whose version is reported, and without which it cannot run
    against: str = "sdk"  # which of ours its ratios are taken with: what is reached in the same way
    ours: bool = False


SYSTEMS = {
    "sdk": Entry("Commonplace, SDK", "commonplace_sdk", "commonplace", ours=True),
    "http": Entry("Commonplace, HTTP", "commonplace_http", "commonplace", ours=True),
    "stdio": Entry("Commonplace, stdio MCP", "commonplace_stdio", "commonplace", ours=True),
    "chromadb": Entry("Chroma", "chroma", "chromadb"),
    "lancedb": Entry("LanceDB", "lance", "lancedb"),
    "mem0": Entry("mem0", "mem0_qdrant", "mem0ai"),
    "sqlite-vec": Entry("sqlite-vec", "sqlite_vec_table", "sqlite-vec"),
    "mcp-memory": Entry("MCP memory server", "mcp_memory", "@modelcontextprotocol/server-memory", against="stdio"),
    "memorywire": Entry("memorywire", "memorywire_store", "memorywire"),
}


def adapter(name: str) -> System:
    made: System = import_module(f"bench.peers.systems.{SYSTEMS[name].module}").Adapter()
    return made
