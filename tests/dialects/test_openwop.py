"""OpenWOP's MemoryAdapter over both stores: entries, refs, tags, time to live, budgets and ranking."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, strategies as st
from openwop_host import Host

from commonplace.config import RedactionConfig
from commonplace.dialects.amp import Amp
from commonplace.dialects.memorywire import Memorywire
from commonplace.dialects.openwop import discovery_document, envelope
from commonplace.dialects.openwop.entries import expiry_of, shown_tags, to_draft, to_entry, tokens, within_budget
from commonplace.engine import Expire, Forget
from commonplace.engine.memory.write import new_memory
from commonplace.engine.runs.refs import MemoryScope
from commonplace.serve.routes import STATUS
from commonplace.stores.memory import InMemory
from commonplace.testing.subject import DAY_MS, START, FakeClock, Subject, open_subject
from commonplace.wire import errors
from commonplace.wire.errors import Forbidden, PayloadTooLarge, ValidationError
from commonplace.wire.models import RecallRequest, UpdateRequest
from commonplace.wire.record import Principal
from commonplace.wire.times import iso
from commonplace.wire.validate import check, portable_schema, schema, schema_names

SCHEMAS = [name for name in schema_names() if name.startswith("openwop/")]


@pytest.fixture
def host(over: tuple[Subject, Callable[[Any], Any]]) -> Host:
    return Host(*over)


# entries


def test_an_entry_comes_back_with_the_hosts_id_and_time(host: Host) -> None:
    entry = host.put("Alice drinks tea", tags=["taste", "source:session"])
    assert entry == {"id": entry["id"], "content": "Alice drinks tea", "tags": ["taste", "source:session"],
                     "createdAt": iso(START)}  # fmt: skip
    assert host.get(entry["id"]) == entry
    assert host.list() == [entry]


def test_newest_come_first(host: Host) -> None:
    for word in ("one", "two", "three"):
        host.put(word)
        host.subject.clock.advance(1000)
    assert host.contents() == ["three", "two", "one"]
    assert host.contents(limit=2) == ["three", "two"]


@pytest.mark.slow
@pytest.mark.parametrize("limit", [None, 0, 501, 10**9])
def test_a_list_has_at_most_500_entries(host: Host, limit: int | None) -> None:
    from commonplace.engine.types import Draft

    host.wait(host.subject.remember_all([Draft("alice", "semantic", f"number {i}") for i in range(503)]))
    assert len(host.list(**({} if limit is None else {"limit": limit}))) == 500


def test_deleting_twice(host: Host) -> None:
    entry = host.put()
    assert (host.delete(entry["id"]), host.delete(entry["id"])) == (True, False)
    assert (host.list(), host.get(entry["id"])) == ([], None)
    assert host.delete("never-there") is False
    assert host.get("x" * 1500) is None


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        ({"content": "tea", "id": "mine"}, "entry.id is given by the host"),
        ({"content": "tea", "createdAt": iso(0)}, "entry.createdAt is given by the host"),
        ({"content": ""}, "content must be non-empty text"),
        ({"content": " \n"}, "entry.content must not be blank"),
        ({}, "content is required"),
        ({"content": "tea", "colour": "red"}, "unknown field 'colour'"),
        ({"content": "tea", "tags": "x"}, "tags must be a list"),
        ({"content": "tea", "tags": ["x" * 257]}, "text of 0 to 256 characters"),
        ({"content": "tea", "expiresAt": "tomorrow"}, "entry.expiresAt must be an ISO-8601 time"),
        ({"content": "tea", "expiresAt": 12}, "expiresAt must be text"),
        ({"content": "tea", "expiresAt": iso(START)}, "entry.expiresAt must be in the future"),
        ({"content": "tea", "expiresAt": iso(START - DAY_MS)}, "entry.expiresAt must be in the future"),
        ("tea", "must be an object"),
    ],
)  # fmt: skip
def test_an_entry_that_is_wrong_is_refused_and_nothing_is_written(host: Host, entry: Any, sentence: str) -> None:
    with pytest.raises(ValidationError, match=sentence):
        host.wait(host.adapter().put("alice", entry))
    assert host.list() == []


def test_an_entry_has_at_most_65536_bytes_of_utf_8(host: Host) -> None:
    assert len(host.put("ü" * 32_768)["content"]) == 32_768
    with pytest.raises(PayloadTooLarge, match="65,537 bytes; at most 65,536"):
        host.put("ü" * 32_768 + "x")
    run = host.start()
    with pytest.raises(PayloadTooLarge):
        host.put("x" * 65_537, run=run, backend="scratchpad")


def test_empty_tags_are_dropped_at_write(host: Host) -> None:
    entry = host.put(tags=["", "a", ""])
    assert entry["tags"] == ["a"]
    assert host.wait(host.subject.get(entry["id"], "alice")).tags == ["a"]


@given(st.lists(st.text(max_size=30), max_size=5), st.text(min_size=1, max_size=80), st.none() | st.integers(1, 10**13))
def test_every_entry_survives_the_mapping(tags: list[str], content: str, expires: int | None) -> None:
    given_: dict[str, Any] = {"content": content, "tags": tags}
    if expires is not None:
        given_["expiresAt"] = iso(expires)
    draft = to_draft(MemoryScope("alice", "project"), given_, "run_1")
    memory = new_memory(Principal(), draft, 0)
    entry = to_entry(memory)
    assert (entry["content"], entry["tags"]) == (content, [tag for tag in tags if tag])
    assert entry.get("expiresAt") == given_.get("expiresAt")
    assert (memory.kind, memory.project, memory.agent_id, memory.type) == ("entry", "project", "alice", "semantic")


# tags


def test_a_tag_filters(host: Host) -> None:
    host.put("one", tags=["a", "b"])
    host.put("two", tags=["b"])
    assert sorted(host.contents(tag="b")) == ["one", "two"]
    assert host.contents(tag="a") == ["one"]
    assert host.contents(tag="B") == []


def test_a_source_is_a_tag(host: Host) -> None:
    entry = host.put("by tag", tags=["source:session", "source:second"])
    assert host.wait(host.subject.get(entry["id"], "alice")).source == "session"
    host.subject.clock.advance(1)
    host.remember("by field", source="session")
    host.subject.clock.advance(1)
    host.remember("of another", source="session-2")
    assert [e["tags"] for e in host.list()] == [
        ["source:session-2"],
        ["source:session"],
        ["source:session", "source:second"],
    ]
    assert host.contents(tag="source:session") == ["by field", "by tag"]
    assert host.contents(tag="source:session", limit=1) == ["by field"]
    assert host.contents(tag="source:second") == ["by tag"]
    assert sorted(host.contents(tag="source:session", rank="relevance", query="field tag")) == ["by field", "by tag"]
    assert host.contents(tag="source:nowhere", rank="relevance", query="field tag") == []
    assert host.contents(tag="source:") == []


def test_a_source_that_is_no_longer_shown_does_not_match(host: Host) -> None:
    id = host.remember("retagged", source="session", metadata={"tags": ["source:other"]})
    assert host.get(id)["tags"] == ["source:other"]
    assert host.contents(tag="source:session") == []
    assert host.contents(tag="source:other") == ["retagged"]


def test_a_tag_without_room_is_kept_and_not_shown(host: Host) -> None:
    id = host.remember("long", metadata={"tags": ["x" * 257, "y"]})
    assert host.get(id)["tags"] == ["y"]
    memory = host.wait(host.subject.get(id, "alice"))
    assert len(memory.tags) == 2
    assert shown_tags(memory) == ["y"]


# time to live


def test_an_expired_entry_is_not_returned(host: Host) -> None:
    entry = host.put("fleeting", expiresAt=iso(START + 5000))
    host.put("lasting")
    assert entry["expiresAt"] == iso(START + 5000)
    run = host.start()
    host.subject.clock.advance(4999)
    assert len(host.list()) == 2
    host.subject.clock.advance(1)
    for view in (None, run):
        assert host.contents(run=view) == ["lasting"]
        assert host.get(entry["id"], run=view) is None
    assert host.delete(entry["id"]) is False


def test_what_is_shown_to_expire_is_never_later_than_was_said(host: Host) -> None:
    assert host.put(expiresAt="2030-01-31T12:00:00.1239+02:00")["expiresAt"] == "2030-01-31T10:00:00.123Z"
    assert host.put(expiresAt="2030-01-31T12:00:00")["expiresAt"] == "2030-01-31T12:00:00.000Z"
    assert expiry_of({"expiresAt": "9999-12-31T23:59:59.9999Z"}) == 253402300799999
    id = host.remember("for ever, nearly", expires_at=2**53 - 1)
    assert host.get(id)["expiresAt"].startswith("9999-12-31T23:59:59.")


# refs


def test_a_ref_is_opaque_and_always_the_same(host: Host) -> None:
    first, again, other = host.ref(), host.ref(), host.ref(namespace="atlas")
    assert first == again != other
    assert first.startswith("mem_")
    assert "alice" not in first
    entry = host.put(ref=first)
    assert host.list("alice") == host.list(first) == [entry]
    assert host.as_("ada", "acme").ref() != first, "nothing of it follows from the names"


def test_a_ref_of_another_host_is_unknown(host: Host) -> None:
    own = host.ref()
    host.put("of this host", ref=own)
    clock = FakeClock()
    with open_subject(InMemory(clock), clock) as (subject, wait):
        foreign = Host(subject, wait).ref()
    assert host.contents(foreign) == []
    with pytest.raises(Forbidden):
        host.put(ref=foreign)
    assert host.contents(own) == ["of this host"]


def test_a_namespace_is_a_project(host: Host) -> None:
    atlas, everything = host.ref(namespace="atlas"), host.ref()
    inside = host.put("inside", ref=atlas)
    outside = host.put("outside")
    assert host.wait(host.subject.get(inside["id"], "alice")).project == "atlas"
    assert host.contents(atlas) == ["inside"]
    assert sorted(host.contents(everything)) == ["inside", "outside"]
    assert host.get(outside["id"], ref=atlas) is None
    assert host.delete(outside["id"], ref=atlas) is False
    assert host.contents(atlas, rank="relevance", query="outside inside") == ["inside"]


def test_another_tenants_ref_is_an_empty_memory(host: Host) -> None:
    acme, globex = host.as_("ada", "acme"), host.as_("bea", "globex")
    ref = acme.ref()
    entry = acme.put("of acme", ref=ref)
    for foreign in (ref, "mem_" + "0" * 32, "mem_x"):
        for run in (None, globex.start()):
            assert globex.list(foreign, run=run) == []
            assert globex.get(entry["id"], ref=foreign, run=run) is None
            assert globex.delete(entry["id"], ref=foreign, run=run) is False
            with pytest.raises(Forbidden) as refused:
                globex.put("planted", ref=foreign, run=run)
            assert "acme" not in refused.value.message
            assert "alice" not in refused.value.message
    assert globex.list("alice") == []  # the same name is an agent of one's own tenant
    assert globex.get(entry["id"]) is None
    assert acme.list(ref) == [entry]


def test_a_ref_of_an_agent_one_may_not_use_is_as_unknown(host: Host) -> None:
    ref = host.ref("bob")
    ada = host.as_("ada", agents=("ada",))
    said = set()
    for foreign in (ref, "mem_" + "1" * 32):
        with pytest.raises(Forbidden) as refused:
            host.wait(host.engine.refs.resolve(ada.who, foreign))
        said.add(refused.value.message)
    assert len(said) == 1
    with pytest.raises(Forbidden):
        ada.ref("bob")
    assert ada.list("bob") == []
    with pytest.raises(Forbidden):
        ada.put(ref="bob")


@pytest.mark.parametrize("ref", ["", "x" * 257, "mem_" + "0" * 300])
def test_a_ref_of_no_or_too_great_length_is_refused(host: Host, ref: str) -> None:
    with pytest.raises(ValidationError, match="memoryRef must be text of 1 to 256"):
        host.put(ref=ref)


def test_a_reader_reads_and_does_not_write(host: Host) -> None:
    entry = host.put()
    reader = host.as_("rea", role="reader")
    assert reader.list() == [entry]
    with pytest.raises(Forbidden):
        reader.put()
    with pytest.raises(Forbidden):
        reader.delete(entry["id"])


# ranking and budgets


def test_rank_by_relevance(host: Host) -> None:
    for content in ("the harbour opens at six", "zebras have stripes", "the harbour master is Bob"):
        host.put(content)
        host.subject.clock.advance(1000)
    ranked = host.contents(rank="relevance", query="zebras stripes")
    assert ranked[0] == "zebras have stripes"
    assert sorted(ranked) == sorted(host.contents())
    assert ranked != host.contents(rank="recency")
    assert host.contents(rank="relevance", query="zebras stripes", limit=1) == ["zebras have stripes"]


@pytest.mark.parametrize("options", [{"rank": "relevance"}, {"query": "x"}, {"rank": "recency", "query": "x"}])
def test_rank_relevance_and_query_go_together(host: Host, options: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="go together"):
        host.list(**options)


@pytest.mark.parametrize(
    "options",
    [
        {"limit": -1},
        {"limit": 1.5},
        {"tag": ""},
        {"tag": "x" * 257},
        {"rank": "best"},
        {"tokenBudget": 0},
        {"colour": 1},
    ],
)  # fmt: skip
def test_options_that_are_wrong_are_refused(host: Host, options: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        host.list(**options)


def test_a_token_budget_keeps_the_first_that_fit(host: Host) -> None:
    for content in ("a" * 40, "b" * 4000, "c" * 40, "d" * 38):
        host.put(content)
        host.subject.clock.advance(1000)
    assert [c[0] for c in host.contents(tokenBudget=20)] == ["d", "c"]
    assert [c[0] for c in host.contents(tokenBudget=19)] == ["d"], "38 characters are ten tokens"
    assert [c[0] for c in host.contents(tokenBudget=30)] == ["d", "c", "a"]
    assert [c[0] for c in host.contents(tokenBudget=30, limit=1)] == ["d"]
    assert host.contents(tokenBudget=1) == []


@given(st.lists(st.integers(1, 200), max_size=12), st.integers(1, 120))
def test_a_budget_is_never_exceeded_and_only_the_unfitting_are_skipped(sizes: list[int], budget: int) -> None:
    entries = [{"id": str(i), "content": "x" * size} for i, size in enumerate(sizes)]
    kept = within_budget(entries, budget)
    assert sum(tokens(entry["content"]) for entry in kept) <= budget
    fitting = [entry for entry in entries if tokens(entry["content"]) <= budget]
    assert kept == fitting[: len(kept)]
    if len(kept) < len(fitting):
        assert sum(tokens(entry["content"]) for entry in fitting[: len(kept) + 1]) > budget


# with the other protocols


def test_what_memorywire_and_amp_wrote_is_listed_and_the_other_way_round(host: Host) -> None:
    written = host.remember("by memorywire", metadata={"tags": ["mw"]})
    amp = Amp(host.engine, host.who)
    stored = host.wait(amp.store({"record": {"type": "lesson", "title": "T", "content": "by AMP", "agent": "alice"}}))
    entry = host.put("by OpenWOP", tags=["ow"])
    assert sorted(host.contents()) == ["by AMP", "by OpenWOP", "by memorywire"]
    assert host.get(written)["tags"] == ["mw"]
    assert host.get(stored["id"].removeprefix("lesson_"))["content"] == "by AMP"
    hits = host.wait(
        Memorywire(host.engine, host.who).recall(RecallRequest(agent_id="alice", query="by OpenWOP"))
    ).results
    (hit,) = [hit for hit in hits if hit.id == entry["id"]]
    assert hit.metadata == {"tags": ["ow"], "kind": "entry"}
    record = host.wait(amp.get({"id": entry["id"]}))["record"]
    assert (record["type"], record["content"], record["tags"]) == ("entry", "by OpenWOP", ["ow"])
    assert host.delete(written) is True
    assert host.wait(host.subject.gone(written, "alice"))


def test_an_archived_memory_is_out_of_the_list(host: Host) -> None:
    id = host.remember("old")
    host.subject.clock.advance(3 * DAY_MS)
    host.wait(host.engine.expire(host.who, Expire("alice", older_than_days=1, action="archive")))
    assert (host.list(), host.get(id), host.delete(id)) == ([], None, False)


def test_an_update_is_seen_outside_a_run(host: Host) -> None:
    entry = host.put("before")
    host.wait(Memorywire(host.engine, host.who).update(entry["id"], UpdateRequest(agent_id="alice", content="after")))
    assert host.contents() == ["after"]


def test_an_erased_entry_is_gone_from_every_view(host: Host) -> None:
    entry = host.put()
    run = host.start()
    host.wait(host.engine.forget(host.who, Forget("alice", [entry["id"]], hard_delete=True)))
    assert (host.list(run=run), host.get(entry["id"], run=run), host.list()) == ([], None, [])


# discovery, faults, schemas


@pytest.mark.parametrize("mode", ["redact", "reject", "off"])
def test_long_term_memory_is_only_offered_while_redaction_is_on(mode: str) -> None:
    said = discovery_document(RedactionConfig(mode=mode))
    check("openwop/operations/discovery.response", said)
    long_term = [] if mode == "off" else ["longTerm", "long-term"]
    parts = {
        "agents": {"supported": True, "memoryBackends": ["scratchpad", "conversation", *long_term]},
        "memory": {
            "supported": True,
            "maxEntrySizeBytes": 65536,
            "ttlSupported": True,
            "injectionBudget": {"supported": True, "tokenCounter": "chars"},
        },
    }
    assert said == {**parts, "capabilities": parts}


def test_long_term_memory_is_refused_while_redaction_is_off(host: Host) -> None:
    entry = host.put()
    host.engine._core.settings.redaction = RedactionConfig(mode="off")
    run = host.start()
    for attempt in (host.list, host.put, lambda: host.get(entry["id"]), lambda: host.delete(entry["id"])):
        with pytest.raises(ValidationError, match="not offered while redaction is off"):
            attempt()
    with pytest.raises(ValidationError, match="redaction is off"):
        host.start(secrets={"key": "x" * 20})
    host.put("noted", run=run, backend="scratchpad")
    assert host.contents(run=run, backend="scratchpad") == ["noted"]


def test_both_spellings_of_long_term_mean_the_same(host: Host) -> None:
    host.put("tea", backend="long-term")
    assert host.contents(backend="longTerm") == ["tea"]
    with pytest.raises(ValidationError, match="backend must be one of scratchpad, conversation, longTerm"):
        host.list(backend="vendor.other")


def test_every_fault_has_its_flat_envelope() -> None:
    faults = [f for f in vars(errors).values() if isinstance(f, type) and issubclass(f, errors.Fault)]
    assert {fault.code for fault in faults} | {"not_implemented"} == set(STATUS)  # which OpenWOP never answers
    for fault in faults:
        check("openwop/error", envelope(fault("it is so", field="x")))
        assert envelope(fault("it is so")) == {"error": fault.code, "message": "it is so"}


@pytest.mark.parametrize("name", SCHEMAS)
def test_each_schema_is_valid_closed_described_and_portable(name: str) -> None:
    found = schema(name)
    jsonschema_rs.meta.validate(found)
    assert found["$id"] == f"https://openwop.dev/schemas/memory/v1/{name.removeprefix('openwop/')}"
    assert found["additionalProperties"] is False
    for rules in found["properties"].values():
        assert rules["description"].endswith(".")
    assert portable_schema(name)["type"] == "object"


@pytest.mark.parametrize(
    ("name", "right"),
    [
        ("memory-entry", {"id": "1", "content": "", "tags": [""], "createdAt": iso(0), "expiresAt": iso(1)}),
        ("memory-list-options", {"limit": 0, "tag": "x", "tokenBudget": 1, "rank": "relevance", "query": "x"}),
    ],
)
def test_the_two_types_of_the_document_are_closed(name: str, right: dict[str, Any]) -> None:
    check(f"openwop/types/{name}", right)
    with pytest.raises(ValidationError, match="unknown field 'more'"):
        check(f"openwop/types/{name}", {**right, "more": 1})
    with pytest.raises(ValidationError):
        check("openwop/types/memory-entry", {**right, "id": "x" * 1501})
