"""An agent's short-term window: what a conversation noted, to be consolidated later."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class WorkingMemory:
    """The notes of one session. Each is a memory like any other: durable, found by every recall at once, and moved to
    long-term memory by the job `consolidate` when it is worth it.

    Methods give what those of the memory give: something to await, unless the memory itself waits.
    """

    def __init__(self, memory: Any, session_id: str, user_id: str | None = None) -> None:
        self._memory = memory
        self.session_id = session_id
        self.user_id = user_id

    def remember(
        self,
        content: str,
        *,
        type: str = "episodic",
        keep: bool = False,
        metadata: Mapping[str, Any] | None = None,
        confidence: float | None = None,
        agent_id: str | None = None,
    ) -> Any:
        """Note something; with `keep` it becomes long-term memory in any case."""
        noted = {**(metadata or {}), "short_term": True, "session_id": self.session_id}
        if keep:
            noted["keep"] = True
        return self._memory.remember(
            content, type=type, metadata=noted, user_id=self.user_id, confidence=confidence, agent_id=agent_id
        )

    def recall(self, query: str, *, k: int = 5, agent_id: str | None = None) -> Any:
        """What the agent knows of this person, the notes of this session included."""
        return self._memory.recall(query, k=k, user_id=self.user_id, agent_id=agent_id)

    def window(self, *, limit: int = 100, agent_id: str | None = None) -> Any:
        """A page {memories, next_cursor} of the notes that are still short-term, newest first."""
        filter = {"short_term": True, "session_id": self.session_id, "status": "live"}
        return self._memory.list(filter=filter, user_id=self.user_id, limit=limit, agent_id=agent_id)
