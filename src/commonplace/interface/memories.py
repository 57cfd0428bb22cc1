"""Single memories: read, listed, changed, brought back, and noted in a session."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import uuid4

from commonplace.interface.base import Document, Documents, InterfaceBase, Time, check_ids, given, listed
from commonplace.wire.errors import ValidationError
from commonplace.working_memory import WorkingMemory


class MemoryMethods(InterfaceBase):
    async def get(self, id: str, *, as_of: Time | None = None, agent_id: str | None = None) -> Document:
        """One memory.

        >>> (await memory.get(kept.id))["content"]
        'Alice is allergic to peanuts'
        """
        return await self._call(Document, "get", self._request(locals()))

    async def list(
        self,
        *,
        type: str | None = None,
        tag: str | None = None,
        user_id: str | None = None,
        filter: Document | None = None,
        limit: int = 100,
        cursor: str | None = None,
        as_of: Time | None = None,
        agent_id: str | None = None,
    ) -> Document:
        """A page {memories, next_cursor}, newest first.

        Args:
            filter: Conditions as in `recall`.
            cursor: The `next_cursor` of the page before.

        >>> page = await memory.list(type="semantic")
        >>> len(page["memories"]), page["next_cursor"]
        (1, None)
        """
        return await self._call(Document, "list", self._request(locals()))

    async def update(
        self,
        id: str,
        *,
        content: str | None = None,
        metadata: Document | None = None,
        tags: Sequence[str] | None = None,
        confidence: float | None = None,
        expires_at: Time | None = None,
        privacy_intent: Document | None = None,
        expected_version: int | None = None,
        approval_required: bool = False,
        reasoning: str | None = None,
        remove_expiry: bool = False,
        agent_id: str | None = None,
    ) -> Document:
        """Change what is given of a memory and keep the rest; the version before stays in its history.

        Args:
            remove_expiry: Keep it for good, whatever `expires_at` it had.
            privacy_intent: {share_with}: who else may see it from now on.
            expected_version: Refuse with a conflict when the memory has moved on.
            approval_required: Change nothing until a person approves it; the answer says `pending_approval`.
            reasoning: Why, for whoever decides.

        >>> (await memory.update(kept.id, confidence=0.9, expected_version=1))["version"]
        2
        """
        request = self._request(locals())
        if request.pop("remove_expiry", False):
            if "expires_at" in request:
                raise ValidationError("give expires_at or remove_expiry, not both", field="expires_at")
            request["expires_at"] = None
        return await self._call(Document, "update", request)

    async def history(self, id: str, *, agent_id: str | None = None) -> Documents:
        """Every version of a memory, oldest first.

        >>> [version["version"] for version in await memory.history(kept.id)]
        [1]
        """
        return await self._call(Documents, "history", self._request(locals()))

    async def undo(
        self,
        ids: Sequence[str] | str | None = None,
        *,
        run_id: str | None = None,
        recovery_id: str | None = None,
        reason: str | None = None,
        agent_id: str | None = None,
    ) -> Document:
        """Take back what was done to memories short of erasing them: forgetting, archiving, demoting, merging,
        promoting. Asked twice it changes nothing the second time.

        Args:
            ids: The memories.
            run_id: Instead of ids, a run of a job (`lifecycle_runs`): everything that it did.
            recovery_id: Instead of ids, what `recover` answered: everything that it took back.
            reason: Why, for the audit log.
            agent_id: Only memories of this agent; an id alone says whose it is.

        >>> forgotten = await memory.forget(kept.id)
        >>> (await memory.undo(kept.id))["restored_ids"] == [kept.id]
        True
        """
        which = {"ids": listed(ids), "run_id": run_id, "recovery_id": recovery_id}
        return await self._call(Document, "undo", given({**which, "reason": reason, "agent_id": agent_id}))

    async def lifecycle_runs(self, *, job: str | None = None, limit: int = 20, before: str | None = None) -> Documents:
        """What runs of jobs did to which memories and why, the newest first; `undo` takes the id of one.

        Args:
            job: Only of this job, such as consolidate.
            before: The id of the last run that was seen, to read on.

        >>> await memory.lifecycle_runs(job="consolidate")
        []
        """
        return await self._call(Documents, "lifecycle_runs", given(locals()))

    def session(self, session_id: str | None = None, *, user_id: str | None = None) -> WorkingMemory:
        """A short-term window for one conversation, whose notes are found at once and consolidated later.

        Args:
            session_id: Of a window that was begun before, which goes on; a new one where nothing is said.

        >>> session = memory.session(user_id="alice")
        >>> noted = await session.remember("Alice is in Lisbon until Friday")
        >>> [note["content"] for note in (await session.window())["memories"]]
        ['Alice is in Lisbon until Friday']
        """
        check_ids(session_id=session_id, user_id=user_id)
        return WorkingMemory(self, session_id or uuid4().hex, user_id)
