"""The MCP project's memory server: a graph in one file, read and written whole at every call.

A memory is an entity with one observation. It has no embedder and no filter: a search is one piece of text, which must
occur as it stands, so every agent has a file of its own and the question is asked as it was written.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from bench.peers.systems.base import AGENT, BaseAdapter, Embed, Hit, Row, Vector
from bench.peers.systems.stdio import Client

SCRIPT = "PEERS_MCP_MEMORY"  # the variable that says where the server's script is


class Adapter(BaseAdapter):
    embedder = "none"

    def open(self, folder: Path, dimension: int, embed: Embed) -> None:
        self._folder = folder
        self._clients: dict[str, Client] = {}
        self.spawned = self._client(AGENT).spawned

    def _client(self, agent: str) -> Client:
        if agent not in self._clients:
            command = ["node", os.environ[SCRIPT]]
            self._clients[agent] = Client(command, {"MEMORY_FILE_PATH": str(self._file(agent))})
        return self._clients[agent]

    def _file(self, agent: str) -> Path:
        return self._folder / f"{agent}.jsonl"

    def load(self, rows: Iterable[Sequence[Row]]) -> None:
        """Written as it writes them: it reads the file anew at every call."""
        for group in rows:
            for row in group:
                entity = {"type": "entity", "name": row.label, "entityType": row.user or "memory"}
                with self._file(row.agent).open("a", encoding="utf-8") as file:
                    file.write(json.dumps({**entity, "observations": [row.text]}, ensure_ascii=False) + "\n")

    def remember(self, row: Row) -> None:
        entity = {"name": row.label, "entityType": row.user or "memory", "observations": [row.text]}
        self._client(row.agent).call("create_entities", entities=[entity])

    def recall(self, question: str, vector: Vector | None, agent: str, user: str | None, k: int) -> list[Hit]:
        found = self._client(agent).call("search_nodes", query=question)["entities"]
        return [Hit(entity["name"], 1.0) for entity in found[:k]]

    def pids(self) -> list[int]:
        return [client.process.pid for client in self._clients.values()]

    def close(self) -> None:
        for client in self._clients.values():
            client.leave()
