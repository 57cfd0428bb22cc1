"""Any sequence of operations, on the real engine and on a dictionary that says what should have happened."""

from __future__ import annotations

import asyncio
import hashlib
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from store_kinds import STORE

from commonplace.embedders.hashing import HashingEmbedder
from commonplace.engine import Engine
from commonplace.engine.governance.decisions import Decision
from commonplace.engine.types import Draft
from commonplace.stores.base import Primary
from commonplace.stores.memory import InMemory
from commonplace.stores.sqlite import SqliteStore
from commonplace.testing.subject import WHO, FakeClock, Subject
from commonplace.wire.errors import Conflict, NotFound, ValidationError

TYPES = ("semantic", "episodic")
USERS = ("alice", "bob", None)
CONFIDENCES = (0.2, 0.9, 1.0)
STRATEGIES = ("keep_canonical", "merge_content", "keep_highest_confidence")


@dataclass
class ModelMemory:
    """What the oracle knows of one memory."""

    id: str
    content: str
    type: str
    user: str | None
    confidence: float
    alias: str | None
    expires_at: int | None
    created_at: int
    status: str = "live"
    versions: int = 1
    demoted: bool = False
    merged: set[str] = field(default_factory=set)  # what else it goes by, since others became part of it


@dataclass
class PendingReview:
    review: str
    draft: Draft | None = None
    memory_id: str = ""
    forgets: dict[str, int] = field(default_factory=dict)  # the versions that were shown


class MemoryStateMachine(RuleBasedStateMachine):
    def open_store(self) -> Primary:
        raise NotImplementedError

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.run = self.runner.run
        self.folder = tempfile.TemporaryDirectory()
        self.clock = FakeClock()
        self.count = 0
        self.known: dict[str, ModelMemory] = {}
        self.erased: set[str] = set()
        self.keys: dict[str, tuple[Draft, str]] = {}
        self.staged: list[PendingReview] = []
        self.rejected: list[PendingReview] = []
        self.snapshots: list[tuple[int, dict[str, tuple[str, int | None]]]] = []
        self.open()

    def open(self) -> None:
        store = self.open_store()
        self.subject = Subject(self.run(Engine.open(store, HashingEmbedder(), clock=self.clock)), store, self.clock)

    def teardown(self) -> None:
        try:
            self.everything_agrees()
            self.audit_holds()
        finally:
            self.run(self.subject.engine.close())
            self.runner.close()
            self.folder.cleanup()

    # the oracle

    def expired(self, m: ModelMemory) -> bool:
        return self.over(m.expires_at)

    def over(self, end: int | None) -> bool:
        return end is not None and end <= self.clock()

    def resolved(self, m: ModelMemory) -> ModelMemory | None:
        """What its id leads to: itself, or what it has become part of."""
        found = m if self.readable(m) else self.holder(m.id)
        return found if found is not None and self.readable(found) else None

    def readable(self, m: ModelMemory) -> bool:
        return m.status in ("live", "archived") and not self.expired(m)

    def pick(self, place: int) -> ModelMemory:
        return list(self.known.values())[place % len(self.known)]

    def content(self) -> str:
        self.count += 1
        letters = (
            hashlib.sha256(str(self.count).encode()).hexdigest().translate(str.maketrans("0123456789", "ghijklmnop"))
        )
        return f"{letters[:7]} {letters[7:14]} {letters[14:21]}"

    def holder(self, alias: str | None) -> ModelMemory | None:
        held = (
            m
            for m in self.known.values()
            if alias is not None and alias in (m.alias, *m.merged) and m.status in ("live", "archived")
        )
        return next(held, None)

    def written(self, draft: Draft, id: str) -> None:
        alias = draft.aliases[0] if draft.aliases else None
        if (before := self.holder(alias)) is not None:
            assert self.expired(before)
            before.status, before.versions = "deleted", before.versions + 1
        self.known[id] = ModelMemory(
            id, draft.content, draft.type, draft.user_id, draft.confidence, alias, draft.expires_at, self.clock()
        )

    def drop(self, m: ModelMemory, hard: bool) -> None:
        if hard:
            del self.known[m.id]
            self.erased.add(m.id)
            self.staged = [s for s in self.staged if m.id not in s.forgets]
        else:
            m.status, m.versions = "deleted", m.versions + 1

    # writing

    drafts = st.fixed_dictionaries(
        {
            "type": st.sampled_from(TYPES),
            "user_id": st.sampled_from(USERS),
            "confidence": st.sampled_from(CONFIDENCES),
            "alias": st.sampled_from((None, None, "one", "two")),
            "ttl": st.sampled_from((None, None, 5, 40)),
        }
    )
    places = st.integers(0, 50)

    def draft(self, fields: dict[str, Any]) -> Draft:
        expires_at = None if fields["ttl"] is None else self.clock() + fields["ttl"]
        return Draft(
            "agent", fields["type"], self.content(), user_id=fields["user_id"], confidence=fields["confidence"],
            aliases=[fields["alias"]] if fields["alias"] else [], expires_at=expires_at,
        )  # fmt: skip

    @rule(fields=drafts, key=st.sampled_from((None, None, "k1", "k2")))
    def remember(self, fields: dict[str, Any], key: str | None) -> None:
        self.clock.advance(1)
        draft = self.draft(fields)
        before = self.holder(fields["alias"])
        clash = key in self.keys or (before is not None and not self.expired(before))
        try:
            receipt = self.run(self.subject.engine.remember(WHO, draft, idempotency_key=key))
        except Conflict:
            assert clash
            return
        assert not clash
        self.written(draft, receipt.id)
        if key is not None:
            self.keys[key] = (draft, receipt.id)

    @precondition(lambda self: self.keys)
    @rule(place=places)
    def remember_again(self, place: int) -> None:
        self.clock.advance(1)
        key, (draft, id) = list(self.keys.items())[place % len(self.keys)]
        try:
            receipt = self.run(self.subject.engine.remember(WHO, draft, idempotency_key=key))
        except Conflict:
            assert id in self.erased
        except ValidationError:
            assert draft.expires_at is not None
            assert draft.expires_at <= self.clock()
        else:
            assert receipt.id == id

    @precondition(lambda self: self.known)
    @rule(place=places, stale=st.booleans())
    def update(self, place: int, stale: bool) -> None:
        self.clock.advance(1)
        m = self.pick(place)
        content = self.content()
        change = self.subject.engine.update_with(
            WHO, "agent", m.id, lambda old: replace(old, content=content), expected_version=m.versions + stale
        )
        try:
            self.run(change)
        except NotFound:
            assert self.resolved(m) is None
        except Conflict:
            assert stale or not self.readable(m), "its version says nothing of what it has become part of"
        else:
            assert self.readable(m)
            assert not stale
            m.content, m.versions = content, m.versions + 1

    # deleting

    @precondition(lambda self: self.known)
    @rule(place=places, hard=st.booleans())
    def forget(self, place: int, hard: bool) -> None:
        self.clock.advance(1)
        m = self.pick(place)
        gone = self.run(self.subject.forget(m.id, hard_delete=hard)).ids
        assert gone == ([m.id] if hard or m.status in ("live", "archived") else [])
        if gone:
            self.drop(m, hard)

    @rule(user=st.sampled_from(USERS[:2]), type=st.sampled_from(TYPES), hard=st.booleans())
    def forget_by_filter(self, user: str, type: str, hard: bool) -> None:
        self.clock.advance(1)
        statuses = ("live", "archived", "deleted") if hard else ("live", "archived")
        chosen = [m for m in self.known.values() if m.user == user and m.type == type and m.status in statuses]
        quoted = [
            s
            for s in (*self.staged, *self.rejected)
            if hard and s.draft is not None and (s.draft.user_id, s.draft.type) == (user, type)
        ]
        gone = self.run(self.subject.forget(filter={"type": type}, user_id=user, hard_delete=hard)).ids
        assert sorted(gone) == sorted([*(m.id for m in chosen), *(s.memory_id for s in quoted)])
        self.staged = [s for s in self.staged if s not in quoted]
        self.rejected = [s for s in self.rejected if s not in quoted]
        for m in chosen:
            self.drop(m, hard)

    @precondition(lambda self: self.known)
    @rule(first=places, second=places, strategy=st.sampled_from(STRATEGIES))
    def merge(self, first: int, second: int, strategy: str) -> None:
        self.clock.advance(1)
        a, b = self.pick(first), self.pick(second)
        try:
            merged = self.run(self.subject.merge(a.id, b.id, strategy=strategy))
        except ValidationError:
            assert a is b
            return
        except NotFound:
            assert not self.readable(a) or not self.readable(b)
            return
        assert self.readable(a)
        assert self.readable(b)
        keep, lose = a, b
        if strategy == "keep_highest_confidence":
            keep, lose = sorted((a, b), key=lambda m: (-m.confidence, m.created_at, m.id))
        elif strategy == "merge_content":
            a.content = "\n".join(dict.fromkeys((a.content, b.content)))
            a.confidence = max(a.confidence, b.confidence)
        keep.versions += 1
        keep.expires_at = None if None in (a.expires_at, b.expires_at) else max(a.expires_at or 0, b.expires_at or 0)
        keep.status = "live" if "live" in (a.status, b.status) else "archived"
        keep.merged |= {lose.id, *lose.merged, *([lose.alias] if lose.alias else [])}
        assert (merged.survivor.id, [m.id for m in merged.losers]) == (keep.id, [lose.id])
        self.drop(lose, hard=False)

    @rule(action=st.sampled_from(("forget", "archive", "demote")), type=st.sampled_from(TYPES))
    def expire(self, action: str, type: str) -> None:
        self.clock.advance(1)
        chosen = [m for m in self.known.values() if m.status == "live" and m.type == type and m.confidence < 0.5]
        done = self.run(self.subject.expire(action, type=type, confidence_below=0.5))
        assert sorted(done) == sorted(m.id for m in chosen)
        for m in chosen:
            if action == "demote":
                m.demoted = True
            else:
                m.status, m.versions = {"forget": "deleted", "archive": "archived"}[action], m.versions + 1

    # reviews

    @rule(fields=drafts)
    def stage_remember(self, fields: dict[str, Any]) -> None:
        self.clock.advance(1)
        draft = self.draft(fields)
        receipt = self.run(self.subject.engine.remember(WHO, draft, approval={"content": draft.content}))
        assert receipt.review_id is not None
        self.staged.append(PendingReview(receipt.review_id, draft, receipt.id))

    @precondition(lambda self: self.known)
    @rule(place=places)
    def stage_forget(self, place: int) -> None:
        self.clock.advance(1)
        m = self.pick(place)
        staged = self.run(self.subject.forget(m.id, approval_required=True))
        if m.status in ("live", "archived"):
            self.staged.append(PendingReview(staged.review_id, forgets={m.id: m.versions}))

    @precondition(lambda self: self.staged)
    @rule(place=places, approved=st.booleans())
    def decide(self, place: int, approved: bool) -> None:
        self.clock.advance(1)
        staged = self.staged[place % len(self.staged)]
        clash = False
        if staged.draft is not None and approved:
            before = self.holder(staged.draft.aliases[0] if staged.draft.aliases else None)
            clash = before is not None and not self.expired(before)
        shown = [(self.known[id], version) for id, version in staged.forgets.items() if id in self.known]
        moved = approved and any(m.versions != version for m, version in shown)
        if staged.draft is not None and approved:  # which are near enough to be shown is the engine's to say
            review = self.run(self.subject.engine.reviews.get(WHO, staged.review))
            beside = [(self.known.get(id), version) for id, version in review["versions"].items()]
            moved = any(m is None or m.versions != version for m, version in beside)
        try:
            self.run(self.subject.engine.reviews.decide(WHO, staged.review, Decision(approved, "Alice")))
        except Conflict:
            assert clash or moved
            staged.forgets = {m.id: m.versions for m, _ in shown if m.status in ("live", "archived")}
            return
        except ValidationError:  # its time ran out while it waited
            assert staged.draft is not None
            assert approved
            assert (staged.draft.expires_at or 0) <= self.clock()
            return
        assert not clash
        assert not moved
        self.staged.remove(staged)
        if not approved and staged.draft is not None:
            self.rejected.append(staged)
        if approved and staged.draft is not None:
            self.written(staged.draft, staged.memory_id)
        elif approved:
            for m in [self.known[id] for id in staged.forgets if id in self.known]:
                if m.status in ("live", "archived"):
                    self.drop(m, hard=False)

    # time

    @rule(ms=st.sampled_from((3, 30)))
    def pass_time(self, ms: int) -> None:
        self.clock.advance(ms)

    @rule()
    def reopen(self) -> None:
        self.run(self.subject.engine.flush())

    @rule()
    def take_snapshot(self) -> None:
        self.clock.advance(1)
        self.snapshots.append(
            (
                self.clock(),
                {m.id: (m.content, m.expires_at) for m in self.known.values() if m.status in ("live", "archived")},
            )
        )
        self.clock.advance(1)

    # reading

    @precondition(lambda self: self.known)
    @rule(place=places)
    def recall_its_own_words(self, place: int) -> None:
        m = self.pick(place)
        found = [hit.id for hit in self.run(self.subject.recall(m.content, k=1000))]
        assert (m.id in found) == (m.status == "live" and not self.expired(m))
        if m.id in found and not m.demoted:
            assert found[0] == m.id

    @precondition(lambda self: self.known)
    @rule(place=places)
    def get_and_history(self, place: int) -> None:
        m = self.pick(place)
        try:
            memory = self.run(self.subject.get(m.id))
            history = self.run(self.subject.engine.history(WHO, "agent", m.id))
        except NotFound:
            assert self.resolved(m) is None
            return
        found = self.resolved(m)
        assert found is not None
        m = found
        assert (memory.content, memory.status, memory.version) == (m.content, m.status, m.versions)
        assert [v.version for v in history] == list(range(1, m.versions + 1))
        for name in (m.alias, *m.merged):
            if name is not None:
                assert self.run(self.subject.get(name)).id == m.id

    @rule()
    def past_instants_stay_as_they_were(self) -> None:
        for at, then in self.snapshots:
            expected = {
                id: content
                for id, (content, end) in then.items()
                if id in self.known and not self.over(end) and not self.expired(self.known[id])
            }
            assert {m.id: m.content for m in self.run(self.subject.list(as_of=at))} == expected

    @rule()
    def audit_holds(self) -> None:
        assert self.run(self.subject.engine.ledger.verify(WHO)).first_bad is None

    @invariant()
    def everything_agrees(self) -> None:
        listed = {m.id: (m.content, m.version) for m in self.run(self.subject.list())}
        assert listed == {m.id: (m.content, m.versions) for m in self.known.values() if self.readable(m)}


class InMemoryStateMachine(MemoryStateMachine):
    def open_store(self) -> Primary:
        return InMemory(self.clock)


class SqliteStateMachine(MemoryStateMachine):
    def open_store(self) -> Primary:
        return SqliteStore(Path(self.folder.name) / "commonplace.db", self.clock)

    @rule()
    def reopen(self) -> None:
        self.run(self.subject.engine.close())
        self.open()


@pytest.mark.slow
@pytest.mark.parametrize("machine", [SqliteStateMachine] if STORE else [InMemoryStateMachine, SqliteStateMachine])
def test_any_sequence_of_operations(machine: type[MemoryStateMachine]) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=15 if STORE else 40,
            stateful_step_count=30,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
