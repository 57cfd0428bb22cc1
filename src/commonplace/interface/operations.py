"""The five operations of memorywire, and what those that destroy would do."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from commonplace.interface.base import Document, Documents, InterfaceBase, Time, listed, present
from commonplace.wire.errors import Fault, ValidationError
from commonplace.wire.models import (
    ExpireRequest,
    ExpireResponse,
    ForgetRequest,
    ForgetResponse,
    MergeRequest,
    MergeResponse,
    RecallRequest,
    RecallResponse,
    RememberRequest,
    RememberResponse,
    Request,
)


class OperationMethods(InterfaceBase):
    async def _remember_batch(self, requests: Documents) -> list[RememberResponse | Fault]:
        raise NotImplementedError

    def _asked(self, operation: str, given: object, parameters: Mapping[str, Any]) -> Document:
        """As `_request`, unless what was `given` is a request already; nothing may then be said beside it."""
        if not isinstance(given, Request):
            return self._request(parameters)
        import inspect

        _self, _request, *others = inspect.signature(getattr(OperationMethods, operation)).parameters.values()
        beside = [p.name for p in others if parameters[p.name] != p.default]
        if beside:
            kind = type(given).__name__
            raise ValidationError(f"{beside[0]} was given beside a {kind}; make it a field of that", field=beside[0])
        return given.model_dump(exclude_unset=True)

    async def remember(
        self,
        content: str | Document | RememberRequest,
        *,
        type: str = "semantic",
        user_id: str | None = None,
        metadata: Document | None = None,
        confidence: float | None = None,
        source: str | None = None,
        expires_at: Time | None = None,
        approval_required: bool = False,
        reasoning: str | None = None,
        privacy_intent: Document | None = None,
        idempotency_key: str | None = None,
        embedding: Sequence[float] | None = None,
        agent_id: str | None = None,
    ) -> RememberResponse:
        """Keep a memory, word for word.

        Args:
            content: What to remember; of a procedure also the state machine itself, which is kept as JSON text.
            type: semantic, episodic, procedural or emotional.
            metadata: Anything else about it; `tags`, `title`, `project`, `session_id`, `speaker`, `event_time`,
                `importance` and `entity_name` become fields of the memory.
            confidence: How sure it is, from 0 to 1 (the default).
            source: Where it comes from.
            expires_at: When it is gone.
            approval_required: Stage it until someone approves; `reasoning` is shown to them.
            privacy_intent: {retain, share_with, user_consent_id}.
            idempotency_key: The same key with the same content is kept once and answered twice.
            embedding: Its vector, where the caller has one.

        >>> kept = await memory.remember("Bob keeps bees", user_id="bob", metadata={"tags": ["hobby"]})
        >>> kept.pending_approval
        False
        """
        if isinstance(content, dict):
            content = _machine_text(content, type)
        return await self._call(RememberResponse, "remember", self._asked("remember", content, locals()))

    async def remember_batch(self, items: Sequence[str | Document]) -> list[RememberResponse | Fault]:
        """Keep many at once: strings, or dicts with the fields of `remember`. Each has its own outcome.

        >>> one, wrong = await memory.remember_batch(["Bob keeps bees", {"content": "", "user_id": "bob"}])
        >>> print(wrong)
        content must be non-empty text, not ''
        """
        wholes = [dict(item) if isinstance(item, Mapping) else {"content": item} for item in items]
        # Not as `_request`, which raises: what is wrong with one of them is said in its place.
        defaults = {"agent_id": self.agent_id, "type": "semantic"}
        return await self._remember_batch([defaults | present(whole) for whole in wholes])

    async def recall(
        self,
        query: str | RecallRequest,
        *,
        k: int = 5,
        user_id: str | None = None,
        types: Sequence[str] | None = None,
        filter: Document | None = None,
        fresher_than_days: int | None = None,
        min_score: float | None = None,
        hops: int | None = None,
        fusion: str | None = None,
        judge: str | None = None,
        quorum_k: int | None = None,
        include_shared: bool = False,
        explain: bool = False,
        as_of: Time | None = None,
        agent_id: str | None = None,
    ) -> RecallResponse:
        """Find the memories that answer a question.

        Args:
            k: How many at most, up to 1,000.
            types: Only these types.
            filter: Conditions on metadata and fields: a value, a list of values, or operators such as {"$gt": 3}.
            fresher_than_days: Only what is not older.
            min_score: The least relevance, from 0 (everything) to 1; by default what a good answer has.
            hops: How far, up to 3, neighbours in the graph strengthen a memory.
            fusion: How the stores' lists become one: rrf (the default), max or weighted.
            judge: Whether a model judges the best hits: auto (the default), off or always.
            quorum_k: In how many stores a memory must be found.
            include_shared: Look into the shared space, too.
            explain: Say of each hit why it is there.

        >>> found = await memory.recall("what is Alice allergic to?", k=1)
        >>> [hit.content for hit in found]
        ['Alice is allergic to peanuts']
        """
        return await self._call(RecallResponse, "recall", self._asked("recall", query, locals()))

    async def forget(
        self,
        ids: Sequence[str] | str | ForgetRequest | None = None,
        *,
        filter: Document | None = None,
        user_id: str | None = None,
        hard_delete: bool = False,
        cascade: bool = False,
        reason: str | None = None,
        approval_required: bool = False,
        reasoning: str | None = None,
        all_agents: bool = False,
        agent_id: str | None = None,
    ) -> ForgetResponse:
        """Delete memories by `ids`, `filter`, or both.

        Args:
            hard_delete: Erase them from every version, index and audit payload, not only from sight.
            cascade: Erase what they were merged into and what was merged into them, too.
            reason: Why, for the audit trail; of an erasure it is kept for good.
            approval_required: Stage it until someone approves; `reasoning` is shown to them.
            all_agents: Look among the memories of every agent that may be written to.

        >>> gone = await memory.forget(kept.id, hard_delete=True)
        >>> gone.forgotten_ids == [kept.id]
        True
        """
        ids = ids if isinstance(ids, ForgetRequest) else listed(ids)
        return await self._call(ForgetResponse, "forget", self._asked("forget", ids, locals()))

    async def merge(
        self,
        canonical: str | MergeRequest,
        duplicates: Sequence[str] = (),
        *,
        strategy: str | None = None,
        approval_required: bool = False,
        reasoning: str | None = None,
        agent_id: str | None = None,
    ) -> MergeResponse:
        """Make one memory of several.

        Args:
            canonical: The id, or the entity name, of the one that stays.
            duplicates: Those that become part of it, at least one.
            strategy: keep_canonical (the default), merge_content or keep_highest_confidence.
            approval_required: Stage it until someone approves; `reasoning` is shown to them.

        >>> again = await memory.remember("Alice cannot eat peanuts")
        >>> (await memory.merge(kept.id, [again.id], strategy="merge_content")).merged_count
        1
        """
        return await self._call(MergeResponse, "merge", self._asked("merge", canonical, locals()))

    async def expire(
        self, policy: Document | ExpireRequest, *, action: str = "forget", agent_id: str | None = None
    ) -> ExpireResponse:
        """Apply a policy to every memory that meets all its conditions.

        Args:
            policy: {older_than_days, type, confidence_below, no_recall_in_days}, at least one of them.
            action: forget, archive (out of recall, not deleted) or demote (a quarter of its score).

        >>> (await memory.expire({"older_than_days": 365}, action="archive")).matched_count
        0
        """
        return await self._call(ExpireResponse, "expire", self._asked("expire", policy, locals()))

    # what destructive operations would do

    async def preview_forget(
        self,
        ids: Sequence[str] | str | None = None,
        *,
        filter: Document | None = None,
        user_id: str | None = None,
        hard_delete: bool = False,
        cascade: bool = False,
        reason: str | None = None,
        approval_required: bool = False,
        reasoning: str | None = None,
        all_agents: bool = False,
        agent_id: str | None = None,
    ) -> Documents:
        """The memories that `forget` would delete; nothing changes.

        >>> [memory["content"] for memory in await memory.preview_forget(filter={"type": "semantic"})]
        ['Alice is allergic to peanuts']
        """
        ids = listed(ids)
        return await self._call(Documents, "preview_forget", self._request(locals()))

    async def preview_merge(
        self,
        canonical: str,
        duplicates: Sequence[str],
        *,
        strategy: str | None = None,
        approval_required: bool = False,
        reasoning: str | None = None,
        agent_id: str | None = None,
    ) -> Document:
        """{survivor, losers}: what `merge` would make of them; nothing changes.

        >>> again = await memory.remember("Alice cannot eat peanuts")
        >>> (await memory.preview_merge(kept.id, [again.id]))["survivor"]["content"]
        'Alice is allergic to peanuts'
        """
        return await self._call(Document, "preview_merge", self._request(locals()))

    async def preview_expire(
        self, policy: Document, *, action: str = "forget", agent_id: str | None = None
    ) -> Documents:
        """The memories that `expire` would reach; nothing changes.

        >>> len(await memory.preview_expire({"type": "semantic"}))
        1
        """
        return await self._call(Documents, "preview_expire", self._request(locals()))

    # as they were called at first; programs use these names
    would_forget, would_merge, would_expire = preview_forget, preview_merge, preview_expire


def _machine_text(machine: Document, type: str) -> str:
    """A state machine as the wire carries it."""
    if type != "procedural":
        raise ValidationError("content must be text; only a procedure may be an object", field="content")
    try:
        return json.dumps(machine, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValidationError(f"content must be JSON: {error}", field="content") from None
