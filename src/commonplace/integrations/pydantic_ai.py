"""Tools of Pydantic AI over a memory: an agent that has them remembers, recalls, corrects and forgets.

    from commonplace.integrations.pydantic_ai import CommonplaceToolset

A refusal that the model can mend asks it to try again; any other is a tool that failed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from commonplace.integrations.access import NO_PERSON, AnyMemory, MemoryAccess, PendingReview, require_done
from commonplace.integrations.framework import framework
from commonplace.interface.base import check_ids
from commonplace.wire.errors import Conflict, Fault, NotFound, PayloadTooLarge, ValidationError
from commonplace.wire.short_ids import shorten_id
from commonplace.wire.times import iso

with framework("pydantic-ai-slim", "2.20", extra="pydantic-ai"):
    from pydantic_ai import RunContext
    from pydantic_ai.exceptions import ModelRetry, ToolFailed
    from pydantic_ai.toolsets import FunctionToolset

#: What a model can mend by calling again in another way.
_MENDABLE = (ValidationError, NotFound, Conflict, PayloadTooLarge)
UserId = str | Callable[[RunContext[Any]], str | None] | None


class CommonplaceToolset(FunctionToolset[Any]):
    """`remember`, `recall`, `update` and `forget`, for `Agent(…, toolsets=[CommonplaceToolset(memory)])`.

    Args:
        memory: A `SyncMemory` or `SyncRemoteMemory`; within one event loop also a `Memory` or `RemoteMemory`.
        user_id: The person it is about, or a function that finds out from the run, such as `lambda ctx: ctx.deps.user`;
            where that gives None, what is about no person. Without one, whatever the agent knows.
        agent_id: Another agent than the memory's own.
        id, max_retries, timeout, requires_approval: As of every `FunctionToolset`.
    """

    def __init__(
        self,
        memory: AnyMemory | None = None,
        *,
        user_id: UserId = None,
        agent_id: str | None = None,
        id: str = "commonplace",
        max_retries: int | None = None,
        timeout: float | None = None,
        requires_approval: bool = False,
    ) -> None:
        super().__init__(id=id, max_retries=max_retries, timeout=timeout, requires_approval=requires_approval)
        if not callable(user_id):
            check_ids(user_id=user_id)
        self._access = MemoryAccess(memory, _error, agent_id)
        self._user_id = user_id
        for tool in (self.remember, self.recall, self.update, self.forget):
            self.add_function(tool)

    async def remember(self, ctx: RunContext[Any], content: str, tags: list[str] | None = None) -> dict[str, Any]:
        """Keep something worth knowing in later conversations: a fact, a preference, a decision.

        Args:
            content: One self-contained sentence, with names instead of pronouns.
            tags: Words to group it by.
        """
        scope = self._scope(self._user(ctx))

        async def work() -> dict[str, Any]:
            metadata = {"tags": tags} if tags else None
            kept = await self._access.memory.remember(content, metadata=metadata, **scope)
            require_done(kept)
            return {"id": shorten_id(kept.id)}

        return await self._access.run(work())

    async def recall(self, ctx: RunContext[Any], query: str, k: int = 5) -> list[dict[str, Any]]:
        """Find what is known that answers a question; nothing means that nothing is known.

        Args:
            query: The question, in full.
            k: How many memories at most.
        """
        user = self._user(ctx)

        async def work() -> list[dict[str, Any]]:
            whose = NO_PERSON if self._is_nobody(user) else None
            found = await self._access.memory.recall(query, k=k, filter=whose, **self._scope(user))
            return [_shown(hit) for hit in found]

        return await self._access.run(work())

    async def update(self, ctx: RunContext[Any], id: str, content: str) -> dict[str, Any]:
        """Correct a memory; what it said before stays in its history.

        Args:
            id: As `remember` or `recall` gave it.
            content: What it says from now on.
        """
        user = self._user(ctx)

        async def work() -> dict[str, Any]:
            await self._require_own(user, id)
            require_done(await self._access.memory.update(id, content=content, agent_id=self._access.agent_id))
            return {"id": id}

        return await self._access.run(work())

    async def forget(self, ctx: RunContext[Any], id: str) -> dict[str, Any]:
        """Delete a memory that is wrong or not wanted any more.

        Args:
            id: As `remember` or `recall` gave it.
        """
        user = self._user(ctx)

        async def work() -> dict[str, Any]:
            await self._require_own(user, id)
            gone = await self._access.memory.forget(id, agent_id=self._access.agent_id)
            require_done(gone)
            return {"forgotten": [shorten_id(each) for each in gone.forgotten_ids]}

        return await self._access.run(work())

    def close(self) -> None:
        self._access.close()

    def _scope(self, user: str | None) -> dict[str, Any]:
        return {"agent_id": self._access.agent_id, "user_id": user}

    def _user(self, ctx: RunContext[Any]) -> str | None:
        """Whom a run is about. Asked for outside of what the model may mend: a wrong answer is the program's mistake,
        and ends the run."""
        user = self._user_id(ctx) if callable(self._user_id) else self._user_id
        check_ids(user_id=user)
        return user

    def _is_nobody(self, user: str | None) -> bool:
        """Whether the run was asked for its person and has none: which is not everybody."""
        return callable(self._user_id) and user is None

    async def _require_own(self, user: str | None, id: str) -> None:
        """An id says nothing about a person: what is about another one is not there for this run."""
        found = await self._access.memory.get(id, agent_id=self._access.agent_id)
        if (user is not None or self._is_nobody(user)) and found.get("user_id") != user:
            raise NotFound(f"there is no memory {id}")


def _error(refusal: Fault | PendingReview) -> Exception:
    # Without the hint, which is for a person at a shell.
    kind: type[Exception] = ModelRetry if isinstance(refusal, _MENDABLE) else ToolFailed
    return kind(refusal.summary)


def _shown(hit: Any) -> dict[str, Any]:
    shown = {"id": shorten_id(hit.id), "content": hit.content, "created_at": iso(hit.created_at)}
    return shown if hit.relevance is None else {**shown, "relevance": round(hit.relevance, 3)}
