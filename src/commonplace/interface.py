"""What a program can do with a memory, whether it is opened here (`sdk`) or kept by a server (`remote`).

Every method turns its keywords into one memorywire request; how that is answered is the business of the two. Nothing
here may load the engine: a program that talks to a server does not pay for one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

from commonplace.wire.errors import Fault, Unavailable, ValidationError
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
from commonplace.working_memory import WorkingMemory

if TYPE_CHECKING:
    from commonplace.embedders.base import Embedder
    from commonplace.engine import Progress

T = TypeVar("T")
Document = dict[str, Any]
Time = int | datetime  # milliseconds since 1970, or the same as a datetime
Documents = list[Document]  # by this name, because `list` is a method below

_LOCAL_ONLY = "run `commonplace {command}` where the data is: a server does not do this for others"


class MemoryInterface:
    """One agent's memory.

    Wherever a method takes it, `agent_id` means another agent than this memory's own, `user_id` the person a memory is
    about, `as_of` an earlier instant to read at; a time is a `datetime`, also within `metadata` and `filter`, or
    milliseconds since 1970. A keyword that is left out, or None, is decided by the protocol's default. Each of the five
    operations also takes its whole request as one object, such as `recall(RecallRequest(…))`: that is what makes this a
    `MemoryStore`. In the examples `memory` is open and holds `kept`, what `remember("Alice is allergic to peanuts")`
    gave.
    """

    agent_id: str
    lists_by_filter = True  # so that, attached as a store, it is asked by `list` which memories are copies

    @property
    def capabilities(self) -> frozenset[str]:
        """What it can do, in the words of memorywire.

        >>> memory.capabilities >= {"semantic", "episodic", "vector", "fts"}
        True
        """
        raise NotImplementedError

    async def close(self) -> None:
        """Let go of what it holds."""
        raise NotImplementedError

    async def _call(self, answer: type[T], operation: str, request: Document) -> T:
        """The answer to a request of this operation, of the type that its method promises."""
        raise NotImplementedError

    async def _remember_batch(self, requests: Documents) -> list[RememberResponse | Fault]:
        raise NotImplementedError

    async def _decide(self, review_id: str, decision: Document) -> Document:
        raise NotImplementedError

    async def _edit_review(self, review_id: str, edit: Document) -> Document:
        raise NotImplementedError

    def _request(self, parameters: Mapping[str, Any]) -> Document:
        """A method's parameters (its `locals()`) as the request that they are the fields of."""
        return {"agent_id": self.agent_id, **_given(parameters)}

    def _asked(self, operation: str, given: object, parameters: Mapping[str, Any]) -> Document:
        """As `_request`, unless what was `given` is a request already; nothing may then be said beside it."""
        if not isinstance(given, Request):
            return self._request(parameters)
        import inspect

        _self, _request, *others = inspect.signature(getattr(MemoryInterface, operation)).parameters.values()
        beside = [p.name for p in others if parameters[p.name] != p.default]
        if beside:
            kind = type(given).__name__
            raise ValidationError(f"{beside[0]} was given beside a {kind}; make it a field of that", field=beside[0])
        return given.model_dump(exclude_unset=True)

    # the five operations

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
        return await self._remember_batch([self._request({"type": "semantic", **whole}) for whole in wholes])

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
        ids = ids if isinstance(ids, ForgetRequest) else _listed(ids)
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
        ids = _listed(ids)
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

    # single memories

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
        given = {"ids": _listed(ids), "run_id": run_id, "recovery_id": recovery_id}
        return await self._call(Document, "undo", _given({**given, "reason": reason, "agent_id": agent_id}))

    async def lifecycle_runs(self, *, job: str | None = None, limit: int = 20, before: str | None = None) -> Documents:
        """What runs of jobs did to which memories and why, the newest first; `undo` takes the id of one.

        Args:
            job: Only of this job, such as consolidate.
            before: The id of the last run that was seen, to read on.

        >>> await memory.lifecycle_runs(job="consolidate")
        []
        """
        return await self._call(Documents, "lifecycle_runs", _given(locals()))

    # working memory

    def session(self, session_id: str | None = None, *, user_id: str | None = None) -> WorkingMemory:
        """A short-term window for one conversation, whose notes are found at once and consolidated later.

        Args:
            session_id: Of a window that was begun before, which goes on; a new one where nothing is said.

        >>> session = memory.session(user_id="alice")
        >>> noted = await session.remember("Alice is in Lisbon until Friday")
        >>> [note["content"] for note in (await session.window())["memories"]]
        ['Alice is in Lisbon until Friday']
        """
        return WorkingMemory(self, session_id or uuid4().hex, user_id)

    # procedures

    async def procedure_show(self, id: str, *, agent_id: str | None = None) -> Document:
        """Where a procedure stands: {name, state, initial, states, possible, version, …}.

        >>> tea = await memory.remember(
        ...     '{"name": "tea", "states": ["cold", "hot"], '
        ...     '"transitions": [{"trigger": "boil", "source": "cold", "dest": "hot"}]}', type="procedural")
        >>> (await memory.procedure_show(tea.id))["possible"]
        [{'trigger': 'boil', 'dest': 'hot'}]
        """
        return await self._call(Document, "procedure_show", self._request(locals()))

    async def procedure_fire(
        self,
        id: str,
        trigger: str,
        facts: Mapping[str, bool] | None = None,
        *,
        expected_version: int | None = None,
        approval_required: bool = False,
        reasoning: str | None = None,
        agent_id: str | None = None,
    ) -> Document:
        """Move a procedure by a trigger; the state before stays in its history. What cannot be fired changes nothing.

        Args:
            facts: For each guard that the trigger depends on, whether it holds.
            expected_version: Refuse with a conflict when the procedure has moved on.
            approval_required: Move nothing until a person approves it; the answer says `pending_approval`.
            reasoning: Why, for whoever decides.

        >>> door = await memory.remember(
        ...     '{"name": "door", "states": ["shut", "open"], '
        ...     '"transitions": [{"trigger": "push", "source": "shut", "dest": "open", "unless": "locked"}]}',
        ...     type="procedural")
        >>> (await memory.procedure_fire(door.id, "push", {"locked": False}))["state"]
        'open'
        """
        return await self._call(Document, "procedure_fire", self._request(locals()))

    async def procedure_reset(
        self,
        id: str,
        *,
        expected_version: int | None = None,
        approval_required: bool = False,
        reasoning: str | None = None,
        agent_id: str | None = None,
    ) -> Document:
        """Put a procedure back to where it starts.

        Args:
            expected_version: Refuse with a conflict when the procedure has moved on.
            approval_required: Move nothing until a person approves it; the answer says `pending_approval`.
            reasoning: Why, for whoever decides.

        >>> tea = await memory.remember('{"name": "tea", "states": ["cold", "hot"], "current": "hot", '
        ...                             '"initial": "cold"}', type="procedural")
        >>> (await memory.procedure_reset(tea.id))["state"]
        'cold'
        """
        return await self._call(Document, "procedure_reset", self._request(locals()))

    async def procedure_draw(self, id: str, *, format: str = "svg", agent_id: str | None = None) -> Document:
        """{id, format, drawing}: the procedure as an SVG document or a Mermaid state diagram.

        Args:
            format: svg or mermaid.

        >>> tea = await memory.remember('{"name": "tea", "states": ["cold", "hot"]}', type="procedural")
        >>> (await memory.procedure_draw(tea.id, format="mermaid"))["drawing"].splitlines()[0]
        'stateDiagram-v2'
        """
        return await self._call(Document, "procedure_draw", self._request(locals()))

    # the knowledge graph

    async def graph_assert(
        self,
        subject: str,
        predicate: str,
        object: str,
        *,
        confidence: float | None = None,
        provenance: str | None = None,
        valid_from: Time | None = None,
        approval_required: bool = False,
        reasoning: str | None = None,
        agent_id: str | None = None,
    ) -> Document:
        """State something; what held of this subject and predicate until then ends, and is shown as `replaced`.

        Args:
            provenance: Where this is known from.
            valid_from: Since when it holds; now by default.
            approval_required: State nothing until a person approves it; the answer says `pending_approval`.
            reasoning: Why, for whoever decides.

        >>> fact = await memory.graph_assert("Alice", "works at", "Initech", provenance=kept.id)
        >>> (await memory.graph_assert("Alice", "works at", "Globex"))["replaced"]["object"]
        'Initech'
        """
        return await self._call(Document, "kg_assert", self._request(locals()))

    async def graph_query(
        self, subject: str, *, predicate: str | None = None, as_of: Time | None = None, agent_id: str | None = None
    ) -> Document:
        """{subject, triples}: what is stated about a subject now, or held at `as_of`.

        >>> fact = await memory.graph_assert("Alice", "works at", "Initech")
        >>> [triple["object"] for triple in (await memory.graph_query("Alice"))["triples"]]
        ['Initech']
        """
        return await self._call(Document, "kg_query", self._request(locals()))

    async def graph_history(
        self, subject: str, *, predicate: str | None = None, agent_id: str | None = None
    ) -> Document:
        """{subject, triples}: everything that was ever stated about it, oldest first.

        >>> (await memory.graph_history("Alice"))["triples"]
        []
        """
        return await self._call(Document, "kg_history", self._request(locals()))

    async def graph_path(
        self, start: str, end: str, *, max_hops: int = 3, as_of: Time | None = None, agent_id: str | None = None
    ) -> Document:
        """{start, end, triples}: the fewest statements that lead from one thing to another.

        >>> fact = await memory.graph_assert("Alice", "works at", "Initech")
        >>> len((await memory.graph_path("Alice", "Initech"))["triples"])
        1
        """
        return await self._call(Document, "kg_path", self._request(locals()))

    async def graph_retract(self, subject: str, predicate: str, *, agent_id: str | None = None) -> Document:
        """End what holds now, with nothing in its place.

        >>> fact = await memory.graph_assert("Alice", "works at", "Initech")
        >>> ended = await memory.graph_retract("Alice", "works at")
        >>> (await memory.graph_query("Alice"))["triples"]
        []
        """
        return await self._call(Document, "kg_retract", self._request(locals()))

    async def graph_erase(self, subject: str, *, mentions: bool = False, agent_id: str | None = None) -> Document:
        """Erase everything ever stated about a subject; with `mentions` also what names it as the object.

        >>> fact = await memory.graph_assert("Alice", "works at", "Initech")
        >>> len((await memory.graph_erase("Initech", mentions=True))["erased"])
        1
        """
        return await self._call(Document, "kg_erase", self._request(locals()))

    async def preview_graph_erase(
        self, subject: str, *, mentions: bool = False, agent_id: str | None = None
    ) -> Document:
        """{subject, triples}: what `graph_erase` would erase; nothing changes.

        >>> (await memory.preview_graph_erase("Initech"))["triples"]
        []
        """
        return await self._call(Document, "preview_kg_erase", self._request(locals()))

    would_graph_erase = preview_graph_erase

    async def neighbors(self, id: str, *, hops: int = 1, agent_id: str | None = None) -> Document:
        """{id, neighbors}: the memories within so many hops of one, each with its distance.

        >>> (await memory.neighbors(kept.id, hops=2))["neighbors"]
        []
        """
        request = self._request({"memory_id": id, "hops": hops, "agent_id": agent_id})
        return await self._call(Document, "kg_neighbors", request)

    # reviews

    async def reviews(self, status: str | None = "pending") -> Documents:
        """The reviews that are pending, approved, rejected or expired; with None all of them.

        >>> waiting = await memory.remember("Bob keeps bees", approval_required=True)
        >>> [review["operation"] for review in await memory.reviews()]
        ['remember']
        """
        return await self._call(Documents, "reviews", {"status": status or "all"})

    async def review(self, review_id: str) -> Document:
        """One review: what was asked, what it would change, and what was decided.

        >>> waiting = await memory.remember("Bob keeps bees", approval_required=True)
        >>> (pending,) = await memory.reviews()
        >>> (await memory.review(pending["id"]))["request"]["content"]
        'Bob keeps bees'
        """
        return await self._call(Document, "review", {"id": review_id})

    async def approve(
        self,
        review_id: str,
        *,
        reviewer: str | None = None,
        reason: str | None = None,
        request: Document | None = None,
        apply: Document | None = None,
        revision: int | None = None,
    ) -> Document:
        """Let a staged write happen; the review, as decided, with its outcome.

        Args:
            reviewer: Who decides, where no token says so.
            request: What happens instead of what was asked.
            apply: A new memory joins another ({"merge_into": id}) or takes the place of others ({"forget": [ids]}).
            revision: That of the review that was looked at: another one is a conflict that carries the fresh review.

        >>> waiting = await memory.remember("Bob keeps bees", approval_required=True)
        >>> (pending,) = await memory.reviews()
        >>> (await memory.approve(pending["id"], reviewer="carol"))["outcome"]["id"] == waiting.id
        True
        """
        fields = {"reviewer": reviewer, "reason": reason, "request": request, "apply": apply, "revision": revision}
        return await self._decide(review_id, {"approved": True, **_given(fields)})

    async def reject(self, review_id: str, *, reviewer: str | None = None, reason: str | None = None) -> Document:
        """Refuse a staged write; it never happens.

        >>> waiting = await memory.remember("Bob keeps bees", approval_required=True)
        >>> (pending,) = await memory.reviews()
        >>> (await memory.reject(pending["id"], reason="hearsay"))["status"]
        'rejected'
        """
        return await self._decide(review_id, {"approved": False, **_given({"reviewer": reviewer, "reason": reason})})

    async def edit_review(self, review_id: str, request: Document, *, revision: int | None = None) -> Document:
        """Ask for something else instead; the review goes on waiting, at its next revision.

        >>> waiting = await memory.remember("Bob keeps bees", approval_required=True)
        >>> request = {"agent_id": memory.agent_id, "type": "semantic", "content": "Bob kept bees"}
        >>> (await memory.edit_review(waiting.review_id, request))["revision"]
        2
        """
        return await self._edit_review(review_id, {"request": request, **_given({"revision": revision})})

    async def decide_many(
        self, review_ids: Sequence[str], approved: bool, *, reviewer: str | None = None, reason: str | None = None
    ) -> Documents:
        """The same decision about many reviews: of each {id, status}, or {id, error}.

        >>> waiting = await memory.remember("Bob keeps bees", approval_required=True)
        >>> [each["status"] for each in await memory.decide_many([waiting.review_id], True)]
        ['approved']
        """
        decision = {"ids": list(review_ids), "approved": approved, **_given({"reviewer": reviewer, "reason": reason})}
        return await self._call(Documents, "decide_many", decision)

    # policies

    async def policies(self) -> Document:
        """{rules, configured}: the tenant's own rules, and those of the configuration, which are asked first.

        >>> (await memory.policies())["rules"]
        []
        """
        return await self._call(Document, "policies", {})

    async def set_policies(self, rules: Sequence[Document]) -> Document:
        """Make these the tenant's own rules, all of them; they hold from the next request on.

        >>> rule = {"name": "other agents", "when": {"dialect": ["mrp"]}, "action": "review"}
        >>> [each["name"] for each in (await memory.set_policies([rule]))["rules"]]
        ['other agents']
        """
        return await self._call(Document, "set_policies", {"rules": list(rules)})

    async def try_policies(self, rules: Sequence[Document], *, days: int = 30) -> Document:
        """{looked_at, counts, caught}: which writes of the last days these rules would have caught; nothing changes.

        >>> rule = {"name": "everything", "action": "review"}
        >>> (await memory.try_policies([rule]))["counts"]
        {'everything': 1}
        """
        return await self._call(Document, "try_policies", {"rules": list(rules), "days": days})

    async def learned_policies(self) -> Documents:
        """What reviewers always approve, and whether it is allowed without them by now.

        >>> await memory.learned_policies()
        []
        """
        return await self._call(Documents, "learned_policies", {})

    async def revoke_learned(self, id: str) -> Document:
        """Take back what was learned of a pattern: only later decisions count.

        >>> from commonplace.wire.errors import NotFound
        >>> try:
        ...     await memory.revoke_learned("0123456789abcdef")
        ... except NotFound:
        ...     print("nothing was learned of it")
        nothing was learned of it
        """
        return await self._call(Document, "revoke_learned", {"id": id})

    # audit

    async def audit(
        self,
        *,
        agent_id: str | None = None,
        operation: str | None = None,
        since: Time | None = None,
        until: Time | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> Document:
        """A page {entries, next_cursor} of the audit trail, oldest first; of every agent where none is named.

        >>> [entry["operation"] for entry in (await memory.audit())["entries"]]
        ['remember']
        """
        return await self._call(Document, "audit", _given(locals()))

    async def verify_audit(self, progress: Progress | None = None) -> Document:
        """{ok, entries, head}, and when it is not ok {first_bad, problem}.

        >>> (await memory.verify_audit())["ok"]
        True
        """
        return await self._call(Document, "verify_audit", {})

    async def audit_head(self) -> Document:
        """{tenant, size, root, at, key_id, signature}: what the audit trail is now, signed. Keep it elsewhere: it
        exposes whoever rewrites the trail later.

        >>> (await memory.audit_head())["size"]
        1
        """
        return await self._call(Document, "audit_head", {})

    async def audit_proof(self, entry: int, size: int | None = None) -> Document:
        """{entry, size, leaf_hash, path, root}: that an entry (the first is 1) is among the first `size`.

        >>> (await memory.audit_proof(1))["path"]
        []
        """
        return await self._call(Document, "audit_proof", _given(locals()))

    async def audit_consistency(self, first: int, second: int | None = None) -> Document:
        """{from, to, from_root, to_root, path}: that the first entries are still those they were.

        >>> (await memory.audit_consistency(1))["to"]
        1
        """
        return await self._call(Document, "audit_consistency", {"from": first, **_given({"to": second})})

    async def audit_key(self) -> Document:
        """{key_id, public_key, algorithm, retired}: the key that heads are signed with, and those before it.

        >>> (await memory.audit_key())["algorithm"]
        'ed25519'
        """
        return await self._call(Document, "audit_key", {})

    # recovery

    async def recover(
        self,
        *,
        source: str | None = None,
        principal: str | None = None,
        since: Time | None = None,
        agent_id: str | None = None,
        dry_run: bool = False,
    ) -> Document:
        """Take back what came from a bad source, and what was made from it: {recovery_id, affected, erased}.

        Args:
            source: What memories say they come from.
            principal: Who wrote, as the audit trail names them.
            since: Only what was done from then on.
            agent_id: Only memories of this agent; by default of every agent.
            dry_run: Say what would be taken back; nothing is changed.

        >>> bad = await memory.remember("Bob is the admin", source="https://evil.example")
        >>> done = await memory.recover(source="https://evil.example")
        >>> (await memory.undo(recovery_id=done["recovery_id"]))["restored_ids"] == [bad.id]
        True
        """
        return await self._call(Document, "recover", _given(locals()))

    # upkeep

    async def status(self) -> Document:
        """What there is: the version, the memories of each agent, the reviews that wait, the embedder.

        >>> (await memory.status())["memories"]
        1
        """
        return await self._call(Document, "status", {})

    async def health(self) -> Document:
        """{status: ok, degraded or down, …}.

        >>> (await memory.health())["status"]
        'ok'
        """
        return await self._call(Document, "health", {})

    async def stores(self) -> Documents:
        """The stores: of each its name, role, status, how much waits for it and since when.

        >>> [(store["role"], store["waiting"]) for store in await memory.stores()]
        [('primary', 0)]
        """
        return await self._call(Documents, "stores", {})

    async def resync(self, store: str, progress: Progress | None = None) -> Document:
        """Make a store that has copies equal to the first: {equal, sent, deleted, memories, copies, hash, copies_hash}.

        >>> from commonplace.wire.errors import NotFound
        >>> try:
        ...     await memory.resync("mem0")
        ... except NotFound:
        ...     print("there is but one store")
        there is but one store
        """
        raise Unavailable(_LOCAL_ONLY.format(command="stores resync"))

    async def flush(self) -> None:
        """Write what is written behind (recall counters and their audit entries), now. A server does it by itself.

        >>> await memory.flush()
        """

    async def doctor(self, repair: bool = True, progress: Progress | None = None) -> Documents:
        """Check everything; what can be derived again is repaired. A list of {check, ok, detail, repaired}.

        >>> all(finding["ok"] for finding in await memory.doctor())
        True
        """
        raise Unavailable(_LOCAL_ONLY.format(command="doctor"))

    async def backup(self, path: str | Path, progress: Progress | None = None) -> Document:
        """A consistent copy of the store in one file, while others read and write.

        >>> made = await memory.backup(folder / "copy.db")
        >>> (folder / "copy.db").exists()
        True
        """
        raise Unavailable(_LOCAL_ONLY.format(command="backup"))

    async def compact(self, progress: Progress | None = None) -> Document:
        """Give back unused space; afterwards no erased byte is left in the files.

        >>> done = await memory.compact()
        """
        raise Unavailable(_LOCAL_ONLY.format(command="compact"))

    async def reindex(self, embedder: str | Embedder | None = None, progress: Progress | None = None) -> Document:
        """Embed everything anew, by default with the configured embedder. Recall keeps working meanwhile.

        >>> (await memory.reindex("hashing-128"))["reindexed"]
        1
        """
        raise Unavailable(_LOCAL_ONLY.format(command="reindex"))


def _given(parameters: Mapping[str, Any]) -> Document:
    """What was given: None, and False where a flag may be left out, mean the same as absence."""
    return {
        name: _plain(value)
        for name, value in parameters.items()
        if name != "self" and value is not None and value is not False
    }


def _machine_text(machine: Document, type: str) -> str:
    """A state machine as the wire carries it."""
    if type != "procedural":
        raise ValidationError("content must be text; only a procedure may be an object", field="content")
    try:
        return json.dumps(machine, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValidationError(f"content must be JSON: {error}", field="content") from None


def _plain(value: Any) -> Any:
    """As the wire has it: tuples are lists and datetimes, wherever they stand, are milliseconds. One without a zone
    means local time, as everywhere in Python."""
    match value:
        case datetime():
            return round(value.timestamp() * 1000)
        case dict():
            return {name: _plain(each) for name, each in value.items()}
        case list() | tuple():
            return [_plain(each) for each in value]
    return value


def _listed(ids: Sequence[str] | str | None) -> Sequence[str] | None:
    return [ids] if isinstance(ids, str) else ids
