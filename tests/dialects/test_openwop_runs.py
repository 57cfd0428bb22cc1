"""Runs: what one sees is what was there when it began, across writers and restarts, until it ends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from openwop_host import Host
from tampering import traces

from commonplace.dialects.memorywire import Memorywire
from commonplace.dialects.openwop import MemoryAdapter, OpenWop
from commonplace.embedders.hashing import HashingEmbedder
from commonplace.engine import Engine
from commonplace.engine.runs.refs import MemoryScope
from commonplace.engine.runs.runs import IDLE_MS, TOUCHED_MS
from commonplace.engine.types import Draft, Expire, Forget, Query
from commonplace.stores.base import Primary
from commonplace.stores.memory import InMemory
from commonplace.stores.sqlite import SqliteStore
from commonplace.testing.subject import DAY_MS, START, FakeClock, Subject, open_subject
from commonplace.wire.errors import Forbidden, NotFound, SecretLeakage, ValidationError
from commonplace.wire.models import ExpireRequest, MergeRequest, UpdateRequest
from commonplace.wire.record import Principal
from commonplace.wire.times import iso

HOUR_MS = 3_600_000


@pytest.fixture
def host(over: tuple[Subject, Callable[[Any], Any]]) -> Host:
    return Host(*over)


# the snapshot


def test_what_is_written_after_the_start_is_invisible_to_the_run(host: Host) -> None:
    first = host.put("there from the start")
    run = host.start()
    own = host.put("the run's own", run=run)
    external = host.remember("of another writer")
    assert host.list(run=run) == [first]
    assert host.get(own["id"], run=run) is host.get(external, run=run) is None
    assert len(host.list()) == len(host.list(run=host.start())) == 3


def test_even_within_one_millisecond(host: Host) -> None:
    """The clock stands still: only the sequence can tell what came first."""
    host.put("before")
    run = host.start()
    host.put("after")
    assert host.contents(run=run) == ["before"]


def test_even_when_the_clock_is_set_back(host: Host) -> None:
    host.put("before")
    run = host.start()
    host.subject.clock.advance(-HOUR_MS)
    host.put("after")
    assert host.contents(run=run) == ["before"]


def test_what_is_deleted_or_changed_after_the_start_is_still_seen(host: Host) -> None:
    kept, changed, merged, archived = (host.put(word, tags=["t"]) for word in ("kept", "changed", "merged", "archived"))
    run = host.start()
    before = host.list(run=run)
    assert host.delete(kept["id"], run=run) is True
    assert host.delete(kept["id"], run=run) is False
    wire = Memorywire(host.engine, host.who)
    host.wait(wire.update(changed["id"], UpdateRequest(agent_id="alice", content="otherwise", tags=["u"])))
    host.wait(wire.merge(MergeRequest(agent_id="alice", canonical=changed["id"], duplicates=[merged["id"]])))
    host.subject.clock.advance(2 * DAY_MS)
    policy = {"agent_id": "alice", "policy": {"older_than_days": 1}, "action": "archive"}
    host.wait(wire.expire(ExpireRequest.model_validate(policy)))
    assert host.list() == []
    assert host.list(run=run) == host.list(run=run, tag="t") == before, "two days later, too"
    assert [host.get(entry["id"], run=run) for entry in before] == before
    assert host.list(run=run, tag="u") == []
    assert archived in before


def test_two_replays_give_the_same_bytes(host: Host) -> None:
    for i in range(5):
        host.put(f"the harbour opens at {i}", tags=["t"])
    host.put("the harbour opens at 1", tags=["t"])  # equals must keep their order, too
    run = host.start()
    options: list[dict[str, Any]] = [{}, {"tag": "t", "limit": 3}, {"tokenBudget": 12},
                                     {"rank": "relevance", "query": "when does the harbour open?"}]  # fmt: skip
    first = [json.dumps(host.list(run=run, **each)) for each in options]
    ids = [entry["id"] for entry in host.list(run=run)]
    host.remember("Bob: the harbour opens at 9", metadata={"speaker": "harbour", "session_id": "s"})
    wire = Memorywire(host.engine, host.who)
    host.wait(wire.update(ids[0], UpdateRequest(agent_id="alice", content="the harbour opens at never")))
    host.wait(wire.update(ids[3], UpdateRequest(agent_id="alice", metadata={"note": "x"})))
    host.delete(ids[1])
    host.subject.clock.advance(40 * HOUR_MS)
    policy = {"agent_id": "alice", "policy": {"type": "semantic"}, "action": "demote"}
    host.wait(wire.expire(ExpireRequest.model_validate(policy)))
    assert [json.dumps(host.list(run=run, **each)) for each in options] == first


def test_of_many_equals_the_same_are_shown(host: Host) -> None:
    for _ in range(40):
        host.put("the harbour opens at six")
    run = host.start()
    asked: dict[str, Any] = {"rank": "relevance", "query": "harbour", "limit": 3}
    first = host.list(run=run, **asked)
    wire = Memorywire(host.engine, host.who)
    for entry in host.list(run=run)[::3]:
        host.wait(wire.update(entry["id"], UpdateRequest(agent_id="alice", metadata={"seen": True})))
    assert host.list(run=run, **asked) == first


def test_a_speaker_who_turns_up_later_changes_nothing(host: Host) -> None:
    for content in ("Caroline, Caroline and Caroline", "boats have sails", "a boat, a harbour and a gull"):
        host.put(content)
    run = host.start()
    asked = {"rank": "relevance", "query": "What did Caroline say about boats?"}
    first, outside = host.contents(run=run, **asked), host.contents(**asked)
    host.remember("I never said so", metadata={"speaker": "Caroline"})
    assert host.contents(run=run, **asked) == first
    assert [each for each in host.contents(**asked) if each != "I never said so"] != outside, "it does outside"


def test_relevance_within_a_run_is_of_its_start_and_counts_nothing(host: Host) -> None:
    host.put("zebras have stripes")
    host.put("boats have sails")
    run = host.start()
    host.put("zebras have hooves")
    assert host.contents(run=run, rank="relevance", query="zebras") == ["zebras have stripes", "boats have sails"]
    host.wait(host.engine.flush())
    counted = host.wait(host.engine.list(host.who, ("alice",))).memories
    assert [m.recalls for m in counted] == [0, 0, 0]
    assert host.contents(rank="relevance", query="zebras", limit=1)
    host.wait(host.engine.flush())
    counted = host.wait(host.engine.list(host.who, ("alice",))).memories
    assert sum(m.recalls for m in counted) == 1
    # Both are in the audit nevertheless.
    assert len(host.wait(host.engine.ledger.entries(host.who, operation="recall"))) == 2


def test_yesterday_is_the_day_before_the_run_began(host: Host) -> None:
    day = DAY_MS
    for event, content in ((START - day, "the picnic with Alice"), (START + 30 * day, "the picnic with Bob")):
        host.wait(host.engine.remember(host.who, Draft("alice", "episodic", content, event_time=event)))
    run = host.start()
    asked = {"rank": "relevance", "query": "which picnic was yesterday?"}
    first = host.contents(run=run, **asked)
    for _ in range(6):
        host.subject.clock.advance(31 * day // 6)
        assert host.contents(run=run, **asked) == first
    assert (first[0], host.contents(**asked)[0]) == ("the picnic with Alice", "the picnic with Bob")


def test_erased_and_expired_entries_vanish_from_the_run(host: Host) -> None:
    erased, expiring, shortened = host.put("a"), host.put("b", expiresAt=iso(START + HOUR_MS)), host.put("c")
    run = host.start()
    host.wait(host.engine.forget(host.who, Forget("alice", [erased["id"]], hard_delete=True)))
    assert host.contents(run=run) == ["c", "b"]
    host.wait(
        Memorywire(host.engine, host.who).update(
            shortened["id"], UpdateRequest(agent_id="alice", expires_at=START + 2 * HOUR_MS)
        )
    )
    host.subject.clock.advance(HOUR_MS)
    assert host.contents(run=run) == ["c"]
    assert host.get(expiring["id"], run=run) is None
    host.subject.clock.advance(HOUR_MS)
    assert host.contents(run=run) == []
    assert host.get(shortened["id"], run=run) is None


def test_an_expiry_extended_after_the_start_is_not_extended_within_the_run(host: Host) -> None:
    entry = host.put("a", expiresAt=iso(START + HOUR_MS))
    run = host.start()
    change = UpdateRequest(agent_id="alice", expires_at=START + DAY_MS)
    host.wait(Memorywire(host.engine, host.who).update(entry["id"], change))
    assert host.list(run=run) == [entry]
    host.subject.clock.advance(HOUR_MS)
    assert host.list(run=run) == []
    assert host.contents() == ["a"]


# the life of a run


def document(host: Host, method: str, *args: Any) -> Any:
    return host.wait(getattr(OpenWop(host.engine, host.who), method)(*args))


def test_a_run_ends_once(host: Host) -> None:
    started = document(host, "start_run", {})
    assert set(started) == {"runId", "snapshot"}
    run = host.wait(host.engine.runs.find(host.who, started["runId"]))
    assert document(host, "end_run", started["runId"]) == {"runId": started["runId"], "ended": True}
    adapter = MemoryAdapter(host.engine, host.who, run)
    for attempt in (
        lambda: host.wait(adapter.list("alice")),
        lambda: host.wait(adapter.get("alice", "x")),
        lambda: host.wait(adapter.put("alice", {"content": "too late"})),
        lambda: host.wait(adapter.delete("alice", "x")),
        lambda: document(host, "end_run", started["runId"]),
        lambda: document(host, "list", {"memoryRef": "alice", "runId": started["runId"]}),
        lambda: document(host, "list", {"memoryRef": "alice", "runId": "run_" + "0" * 32}),
        lambda: document(host, "put", {"memoryRef": "alice", "runId": "x", "entry": {"content": "tea"}}),
    ):
        with pytest.raises(NotFound, match=r"no run .*or it has ended"):
            attempt()
    assert host.list() == []


def test_a_run_ends_after_seven_idle_days(host: Host) -> None:
    host.put("before")
    run = host.start()
    host.put("jotted", run=run, backend="scratchpad")
    for _ in range(4):  # every use counts
        host.subject.clock.advance(7 * DAY_MS - 1)
        run = host.wait(host.engine.runs.use(host.who, run.id))
        assert host.contents(run=run) == ["before"]
    assert host.contents(run=run, backend="scratchpad") == ["jotted"]
    host.subject.clock.advance(7 * DAY_MS)
    with pytest.raises(NotFound):
        host.wait(host.engine.runs.use(host.who, run.id))
    assert remaining_records(host, run.id) == []


def test_idle_runs_are_swept_when_another_starts_or_the_store_is_compacted(host: Host) -> None:
    runs = [host.start() for _ in range(2)]
    for run in runs:
        host.put("jotted", run=run, backend="conversation")
    host.subject.clock.advance(IDLE_MS)
    fresh = host.start()
    assert [remaining_records(host, run.id) for run in runs] == [[], []]
    assert host.wait(host.engine.runs.use(host.who, fresh.id)).id == fresh.id
    host.subject.clock.advance(IDLE_MS)
    assert host.wait(host.engine.runs.sweep("local")) == 1
    assert host.wait(host.subject.store.records("local", "run")) == []


def test_using_a_run_writes_at_most_once_an_hour(host: Host) -> None:
    run = host.start()
    writes: list[str] = []
    transact = host.engine._core.transact

    async def counted(tenant: str, work: Any) -> Any:
        writes.append(tenant)
        return await transact(tenant, work)

    host.engine._core.transact = counted  # type: ignore[method-assign]
    for _ in range(10):
        host.subject.clock.advance(TOUCHED_MS // 10)
        host.wait(host.engine.runs.use(host.who, run.id))
    assert len(writes) == 1


def test_an_end_that_was_interrupted_is_finished_later(host: Host) -> None:
    run = host.start()
    host.put("jotted", run=run, backend="scratchpad")
    records = host.engine._core.primary.records

    async def stops(*_: Any) -> Any:
        raise KeyboardInterrupt

    host.engine._core.primary.records = stops  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(host.engine.runs._finish("local", run.id))
    host.engine._core.primary.records = records  # type: ignore[method-assign]
    with pytest.raises(NotFound):
        host.wait(host.engine.runs.use(host.who, run.id))
    assert remaining_records(host, run.id)
    host.wait(host.engine.runs.sweep("local"))
    assert remaining_records(host, run.id) == []


def remaining_records(host: Host, run_id: str) -> list[Any]:
    """What the store still has of a run."""
    kinds = [f"run:{run_id}", *(f"run:{run_id}:{part}" for part in ("scratchpad", "conversation", "outcome"))]
    found = [record for kind in kinds for record in host.wait(host.subject.store.records("local", kind))]
    return found + [r for r in host.wait(host.subject.store.records("local", "run")) if r.key == run_id]


def test_a_run_of_an_agent_is_for_all_who_may_use_the_agent(host: Host) -> None:
    ada, bea = host.as_("ada", agents=("ada",)), host.as_("bea", agents=("bea",))
    worker = host.as_("worker", agents=("ada", "x"))
    bound = document(ada, "start_run", {"memoryRef": "ada"})["runId"]
    loose = document(ada, "start_run", {})["runId"]
    assert host.wait(host.engine.runs.use(worker.who, bound))
    assert host.wait(host.engine.runs.use(host.who, loose)), "whoever may use every agent may use it"
    for who, run in ((bea, bound), (bea, loose), (worker, loose), (host.as_("ada", "elsewhere"), loose)):
        with pytest.raises(NotFound):
            host.wait(host.engine.runs.use(who.who, run))
        with pytest.raises(NotFound):
            document(who, "end_run", run)


def test_a_reader_ends_only_runs_it_started(host: Host) -> None:
    reader = host.as_("rea", role="reader")
    own, others = document(reader, "start_run", {"memoryRef": "alice"})["runId"], host.start()
    host.put("noted", run=others, backend="scratchpad")
    document(reader, "end_run", own)
    assert host.wait(host.engine.runs.use(reader.who, others.id)), "it may use it"
    with pytest.raises(Forbidden, match="needs the role writer"):
        document(reader, "end_run", others.id)
    assert host.contents(run=others, backend="scratchpad") == ["noted"]
    document(host.as_("wri"), "end_run", others.id)
    assert remaining_records(host, others.id) == []


def test_calls_within_a_run_may_leave_out_the_ref_it_was_started_with(host: Host) -> None:
    host.put()
    run = document(host, "start_run", {"memoryRef": "alice"})["runId"]
    assert len(document(host, "list", {"runId": run})["entries"]) == 1
    with pytest.raises(ValidationError, match="memoryRef is required"):
        document(host, "list", {"runId": document(host, "start_run", {})["runId"]})
    with pytest.raises(ValidationError, match="memoryRef is required"):
        document(host, "list", {})


# scratchpad and conversation


@pytest.mark.parametrize("backend", ["scratchpad", "conversation"])
def test_a_run_reads_its_own_notes_at_once_and_they_end_with_it(host: Host, backend: str) -> None:
    run, other = host.start(), host.start()
    first = host.put("first", run=run, backend=backend, tags=["a", ""])
    host.subject.clock.advance(1)
    second = host.put("second", run=run, backend=backend, expiresAt=iso(START + HOUR_MS))
    assert host.list(run=run, backend=backend) == [second, first]
    assert host.list(run=run, backend=backend, tag="a", limit=5, tokenBudget=5) == [first]
    assert host.get(first["id"], run=run, backend=backend) == first
    assert first["tags"] == ["a"]
    assert host.list(run=other, backend=backend) == host.list() == host.list(run=run) == []
    assert host.list("bob", run=run, backend=backend) == []
    assert host.get(first["id"], run=run) is None
    host.subject.clock.advance(HOUR_MS)
    assert host.list(run=run, backend=backend) == [first]
    assert (host.delete(second["id"], run=run, backend=backend), host.get(second["id"], run=run, backend=backend)) == (
        False,
        None,
    )
    assert host.delete(first["id"], ref="bob", run=run, backend=backend) is False
    assert host.delete(first["id"], run=run, backend=backend) is True
    assert host.delete(first["id"], run=run, backend=backend) is False
    host.put("third", run=run, backend=backend)
    host.wait(host.engine.runs.end(host.who, run.id))
    assert remaining_records(host, run.id) == []
    scope = MemoryScope("alice")
    for too_late in (
        lambda: host.put("too late", run=run, backend=backend),
        # As it is when the end comes between the look at the run and the write.
        lambda: host.wait(host.engine.run_notes.add(host.who, run, backend, scope, "too late")),
        lambda: host.wait(host.engine.runs.keep_outcome(host.who, run, {}, [])),
    ):
        with pytest.raises(NotFound):
            too_late()
    assert remaining_records(host, run.id) == []


def test_notes_are_wrong_as_entries_are(host: Host) -> None:
    run = host.start()
    for entry, sentence in (
        ({"content": " "}, "entry.content must not be blank"),
        ({"content": "x", "expiresAt": iso(START)}, "entry.expiresAt must be in the future"),
        ({"content": "x", "id": "mine"}, "given by the host"),
    ):
        with pytest.raises(ValidationError, match=sentence):
            host.wait(host.adapter(run).put("alice", entry, backend="scratchpad"))
    with pytest.raises(ValidationError, match="rank relevance is for longTerm"):
        host.list(run=run, backend="scratchpad", rank="relevance", query="x")
    for attempt in (host.list, host.put):
        with pytest.raises(ValidationError, match="scratchpad belongs to a run: give its runId"):
            attempt(backend="scratchpad")


def test_what_is_not_text_is_refused_or_unknown(host: Host) -> None:
    run, half = host.start(), chr(0xD800)
    for attempt in (host.list, lambda ref: host.put(ref=ref)):
        with pytest.raises(ValidationError, match="memoryRef holds half of a surrogate pair"):
            attempt(half)
    for backend in ("longTerm", "scratchpad"):
        assert host.get(half, run=run, backend=backend) is None
        assert host.delete(half, run=run, backend=backend) is False


def test_notes_of_a_namespace_are_its_own(host: Host) -> None:
    run, atlas = host.start(), host.ref(namespace="atlas")
    host.put("inside", ref=atlas, run=run, backend="scratchpad")
    host.put("outside", run=run, backend="scratchpad")
    assert host.contents(atlas, run=run, backend="scratchpad") == ["inside"]
    assert sorted(host.contents(run=run, backend="scratchpad")) == ["inside", "outside"]


# restarts


def reopened(tmp_path: Path, clock: FakeClock) -> Primary:
    return SqliteStore(tmp_path / "commonplace.db", clock)


def test_a_run_survives_a_restart(tmp_path: Path, clock: FakeClock) -> None:
    with open_subject(reopened(tmp_path, clock), clock) as pair:
        host = Host(*pair)
        ref = host.ref(namespace="atlas")
        host.put("before", ref=ref)
        run = host.start()
        host.put("jotted", ref=ref, run=run, backend="scratchpad")
        first = json.dumps(host.list(ref, run=run))
    with open_subject(reopened(tmp_path, clock), clock) as pair:
        host = Host(*pair)
        host.put("after", ref=ref)
        again = host.wait(host.engine.runs.use(host.who, run.id))
        assert again.snapshot == run.snapshot
        assert json.dumps(host.list(ref, run=again)) == first
        assert host.contents(ref, run=again, backend="scratchpad") == ["jotted"]


def test_after_a_restart_a_run_with_secrets_reads_and_no_longer_writes(tmp_path: Path, clock: FakeClock) -> None:
    value = "-".join(["hunter", "2", "hunter"])
    with open_subject(reopened(tmp_path, clock), clock) as pair:
        host = Host(*pair)
        run = host.start(secrets={"door": value})
        kept = host.put(f"it is {value}", run=run)
        assert value not in json.dumps(kept)
    with open_subject(reopened(tmp_path, clock), clock) as pair:
        host = Host(*pair)
        run = host.wait(host.engine.runs.use(host.who, run.id))
        for backend in ("longTerm", "scratchpad"):
            with pytest.raises(SecretLeakage, match="gone since the server was restarted"):
                host.put(f"it is {value}", run=run, backend=backend)
        assert host.list(run=run) == []
    assert traces(tmp_path, value) == []


@pytest.mark.parametrize(
    ("secrets", "sentence"),
    [
        ({"key": "short12"}, "secrets.key must be text of 8 to"),
        ({"key": "s   h  o"}, "key"),
        ({"key": 12345678}, "secrets.key must be text of 8 to"),
        ({"a key": "long enough"}, "a label in secrets"),
        ({"": "long enough"}, "a label in secrets"),
        (["long enough"], "secrets must be an object"),
        ({f"key{i}": f"long enough {i}" for i in range(101)}, "at most 100"),
        ({f"key{i}": "long enough" * 5957 for i in range(5)}, "at most 262,144 characters together"),
    ],
)
def test_secrets_that_are_wrong_are_refused_without_being_repeated(host: Host, secrets: Any, sentence: str) -> None:
    with pytest.raises(ValidationError, match=sentence) as refused:
        document(host, "start_run", {"secrets": secrets})
    said = str(refused.value.to_wire())
    assert "short12" not in said
    assert "12345678" not in said
    assert "long enough" not in said


# against an oracle


@dataclass
class Oracle:
    """Every version ever, what was current when each run began, and how that was ranked."""

    now: dict[str, Any] = field(default_factory=dict)
    last: dict[str, Any] = field(default_factory=dict)  # of each memory, deleted or not
    runs: list[tuple[Any, dict[str, Any]]] = field(default_factory=list)
    ranked: dict[str, list[Any]] = field(default_factory=dict)
    erased: set[str] = field(default_factory=set)

    def seen(self, start: dict[str, Any], at: int) -> set[tuple[str, str]]:
        def over(m: Any) -> bool:
            return m.expires_at is not None and m.expires_at <= at

        kept = [m for m in start.values() if m.id not in self.erased and not over(m)]
        return {(m.id, m.content) for m in kept if not over(self.last[m.id])}


STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["put", "remember", "update", "delete", "erase", "shorten", "start", "pass", "demote", "restart"]
        ),
        st.integers(0, 5),
    ),
    min_size=3, max_size=25,
)  # fmt: skip


RANKED = {"rank": "relevance", "query": "entry changed"}


async def run_steps(
    store: Primary, clock: FakeClock, steps: list[tuple[str, int]], again: Callable[[], Primary] | None = None
) -> None:
    engine = await Engine.open(store, HashingEmbedder(), clock=clock)
    who, oracle = Principal(), Oracle()
    try:
        for number, (step, which) in enumerate(steps):
            target = list(oracle.now)[which % len(oracle.now)] if oracle.now else None
            run = oracle.runs[which % len(oracle.runs)][0] if oracle.runs else None
            memory = oracle.now.get(target or "")
            if step == "start":
                run = await engine.runs.start(who)
                oracle.runs.append((run, dict(oracle.now)))
                oracle.ranked[run.id] = await MemoryAdapter(engine, who, run).list("alice", RANKED)
            elif step == "restart":
                if again is not None:
                    await engine.close()
                    engine = await Engine.open(again(), HashingEmbedder(), clock=clock)
            elif step == "demote":
                await engine.expire(who, Expire("alice", type="semantic", action="demote"))
            elif step == "pass":
                clock.advance(which * 400)
            elif step in ("put", "remember"):
                entry: dict[str, Any] = {"content": f"entry {which}"}  # some are alike
                if which == 0:
                    entry["expiresAt"] = iso(clock() + 1000)
                if step == "put":
                    id = (await MemoryAdapter(engine, who, run).put("alice", entry))["id"]
                else:
                    id = (await engine.remember(who, Draft("alice", "semantic", entry["content"]))).id
                oracle.now[id] = await engine.get(who, "alice", id)
            elif memory is None or (memory.expires_at is not None and memory.expires_at <= clock()):
                continue
            elif step == "update":
                change = replace(memory, content=f"changed {number}")
                oracle.now[memory.id] = await engine.update_with(who, "alice", memory.id, lambda _, c=change: c)
            elif step == "shorten" and memory.expires_at is None:
                change = replace(memory, expires_at=clock() + 500)
                oracle.now[memory.id] = await engine.update_with(who, "alice", memory.id, lambda _, c=change: c)
            elif step == "delete":
                assert await MemoryAdapter(engine, who, run).delete("alice", memory.id) is True
                del oracle.now[memory.id]
            elif step == "erase":
                await engine.forget(who, Forget("alice", [memory.id], hard_delete=True))
                oracle.erased.add(memory.id)
                del oracle.now[memory.id]
            oracle.last |= oracle.now
            for run, start in [*oracle.runs, (None, oracle.now)]:
                adapter = MemoryAdapter(engine, who, run)
                listed = await adapter.list("alice")
                expected = oracle.seen(start, clock())
                assert {(e["id"], e["content"]) for e in listed} == expected
                assert listed == sorted(listed, key=lambda e: (e["createdAt"], e["id"]), reverse=True)
                assert [await adapter.get("alice", e["id"]) for e in listed] == listed
                hidden = {*oracle.now, *start} - {id for id, _ in expected}
                assert [await adapter.get("alice", id) for id in hidden] == [None] * len(hidden)
                if run is not None and {e["id"] for e in oracle.ranked[run.id]} == {id for id, _ in expected}:
                    assert await adapter.list("alice", RANKED) == oracle.ranked[run.id]
    finally:
        await engine.close()


@pytest.mark.slow
@settings(max_examples=120, deadline=None)
@given(STEPS)
def test_any_interleaving_shows_each_run_its_start_in_memory(steps: list[tuple[str, int]]) -> None:
    clock = FakeClock()
    asyncio.run(run_steps(InMemory(clock), clock, steps))


@pytest.mark.slow
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_any_interleaving_shows_each_run_its_start_in_sqlite(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]]
) -> None:
    clock = FakeClock()
    folder = tmp_path_factory.mktemp("interleaved")

    def opened() -> Primary:
        return SqliteStore(folder / "commonplace.db", clock)

    asyncio.run(run_steps(opened(), clock, steps, opened))


def test_a_query_at_a_snapshot_says_which_sequence_it_read(host: Host) -> None:
    host.put("tea")
    run = host.start()
    host.put("more tea")
    query = Query(("alice",), "tea", explain=True, min_score=0.0, snapshot=run.snapshot)
    found = host.wait(host.engine.recall(host.who, query))
    assert (found.explain["as_of_seq"], len(found.hits)) == (run.snapshot.seq, 1)
