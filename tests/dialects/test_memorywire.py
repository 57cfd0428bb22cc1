"""memorywire over the engine: every answer follows its schema, and metadata comes back as it was written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from tampering import raw_database

from commonplace.dialects.memorywire import Memorywire, to_wire
from commonplace.engine.types import Draft
from commonplace.stores.sqlite import SqliteStore
from commonplace.testing.subject import DAY_MS, WHO, FakeClock, Subject, open_subject
from commonplace.wire.errors import Conflict, Fault, NotFound, ValidationError
from commonplace.wire.metadata_fields import fields_from_metadata
from commonplace.wire.models import (
    ExpireRequest,
    ForgetRequest,
    MergeRequest,
    Message,
    RecallRequest,
    RememberRequest,
    UpdateRequest,
    dump,
)
from commonplace.wire.validate import check, parse


class Client:
    """Documents in, documents out, both checked against the schemas."""

    def __init__(self, over: tuple[Subject, Any]) -> None:
        self.s, self.run = over
        self.wire = Memorywire(self.s.engine, WHO)

    def call(self, operation: str, model: type[Message], fields: dict[str, Any]) -> dict[str, Any]:
        document = {"agent_id": "agent", **fields}
        check(f"memorywire/operations/{operation}", document)
        answer = dump(self.run(getattr(self.wire, operation)(parse(model, document))))
        check(f"memorywire/operations/{operation}.response", answer)
        return answer

    def remember(self, content: str = "Alice plays the violin", **fields: Any) -> dict[str, Any]:
        return self.call("remember", RememberRequest, {"type": "semantic", "content": content, **fields})

    def recall(self, query: str = "violin", **fields: Any) -> dict[str, Any]:
        return self.call("recall", RecallRequest, {"query": query, **fields})

    def forget(self, **fields: Any) -> dict[str, Any]:
        return self.call("forget", ForgetRequest, fields)

    def merge(self, **fields: Any) -> dict[str, Any]:
        return self.call("merge", MergeRequest, fields)

    def expire(self, policy: dict[str, Any], **fields: Any) -> dict[str, Any]:
        return self.call("expire", ExpireRequest, {"policy": policy, **fields})

    def update(self, id: str, **fields: Any) -> dict[str, Any]:
        return self.run(self.wire.update(id, parse(UpdateRequest, {"agent_id": "agent", **fields})))  # type: ignore[no-any-return]


@pytest.fixture
def client(over: tuple[Subject, Any]) -> Client:
    return Client(over)


def test_the_five_operations_answer_by_their_schemas(client: Client) -> None:
    name = client.s.store.name
    first = client.remember(user_id="alice", metadata={"k": 1}, confidence=0.5, source="chat")
    now = client.s.clock()
    plain = {"stored_at": now, "stores": [name], "pending_approval": False, "approval_url": None}
    assert first == {"id": first["id"], **plain}
    found = client.recall(explain=True)
    assert (found["fusion_used"], found["stores_queried"]) == ("rrf", [name])
    (hit,) = found["results"]
    said = {
        "id": first["id"], "type": "semantic", "content": "Alice plays the violin", "metadata": {"k": 1},
        "confidence": 0.5, "source": "chat", "user_id": "alice", "source_store": name,
    }  # fmt: skip
    assert {k: hit[k] for k in said} == said
    second = client.remember("Alice plays the viola")
    merged = client.merge(canonical=first["id"], duplicates=[second["id"]], strategy="merge_content")
    assert (merged["canonical"], merged["merged_count"], merged["strategy_used"]) == (first["id"], 1, "merge_content")
    assert merged["stores"] == [name]
    assert client.expire({"confidence_below": 0.1}, action="archive")["matched_count"] == 0
    assert client.expire({"type": "semantic"}, action="demote") == {
        "matched_count": 1, "action_taken": "demote", "stores": [name]}  # fmt: skip
    gone = client.forget(ids=[second["id"]], hard_delete=True)
    assert (gone["forgotten_ids"], gone["hard_delete"]) == ([second["id"]], True)
    assert gone["erased"]["descendants"] == [first["id"]]


def test_every_field_of_a_remember_is_kept(client: Client) -> None:
    given = {
        "type": "episodic", "user_id": "alice", "metadata": {"k": [1, {"x": None}]}, "confidence": 0.25,
        "source": "chat", "expires_at": client.s.clock() + DAY_MS,
    }  # fmt: skip
    kept = client.remember("Alice played the violin", **given)["id"]
    shown = client.run(client.wire.get("agent", kept))
    (hit,) = client.recall()["results"]
    for document in (shown, hit):
        assert {name: document[name] for name in given} == given
    assert (shown["agent_id"], shown["content"]) == ("agent", "Alice played the violin")
    assert client.run(client.wire.get("agent", client.remember("plain")["id"]))["confidence"] == 1.0


def test_what_waits_for_approval_says_so(client: Client) -> None:
    client.s.engine._core.settings.review_url = "http://localhost:8420/ui/inbox"
    kept = client.remember("kept")
    doubled = client.remember("kept too")
    staged = client.remember(approval_required=True, reasoning="heard it")
    assert (staged["stores"], staged["pending_approval"]) == ([], True)
    forget = client.forget(ids=[kept["id"]], approval_required=True)
    assert (forget["forgotten_ids"], forget["stores"], forget["pending_approval"]) == ([], [], True)
    merge = client.merge(canonical=kept["id"], duplicates=[doubled["id"]], approval_required=True)
    assert (merge["merged_count"], merge["stores"], merge["pending_approval"]) == (0, [], True)
    reviews = client.run(client.s.engine.reviews.list(WHO))
    assert [r["operation"] for r in reviews] == ["remember", "forget", "merge"]
    for answer, review in zip((staged, forget, merge), reviews, strict=True):
        assert answer["approval_url"] == f"http://localhost:8420/ui/inbox/{review['id']}"
        assert answer["review_id"] == review["id"]
    edited = {"agent_id": "agent", "type": "semantic", "content": "Alice plays the cello"}
    decided = client.run(client.wire.decide(reviews[0]["id"], True, "Alice", request=edited))
    assert (decided["status"], decided["outcome"]["id"]) == ("approved", staged["id"])
    assert client.recall("cello", k=1)["results"][0]["content"] == "Alice plays the cello"
    with pytest.raises(ValidationError):
        client.run(client.wire.decide(reviews[1]["id"], True, "Alice", request={"agent_id": "agent"}))
    assert client.run(client.wire.decide(reviews[2]["id"], True, "Alice"))["outcome"]["merged_count"] == 1
    with pytest.raises(Conflict):
        client.run(client.wire.decide(reviews[2]["id"], False, "Alice"))


def test_an_approved_erasure_names_what_still_holds_the_text(client: Client) -> None:
    kept, doubled = client.remember("kept")["id"], client.remember("kept too")["id"]
    client.merge(canonical=kept, duplicates=[doubled])
    client.forget(ids=[doubled], hard_delete=True, approval_required=True)
    (review,) = client.run(client.wire.reviews())
    decided = client.run(client.wire.decide(review["id"], True, "Alice"))
    check("memorywire/types/review", decided)
    assert decided["outcome"] == {"forgotten_ids": [doubled], "erased": {"descendants": [kept], "backups": []}}


def test_recall_narrows_by_user_type_age_and_space(client: Client) -> None:
    old = client.remember(user_id="alice")["id"]
    client.s.clock.advance(3 * DAY_MS)
    new = client.remember(type="episodic", user_id="bob")["id"]
    shared = client.remember(agent_id="shared")["id"]

    def ids(**fields: Any) -> set[str]:
        return {hit["id"] for hit in client.recall(**fields)["results"]}

    assert ids() == {old, new}
    assert ids(user_id="alice") == {old}
    assert ids(types=["episodic"]) == {new}
    assert ids(types=["episodic"], user_id="alice") == set()
    assert ids(fresher_than_days=2) == {new}
    assert ids(fresher_than_days=3) == ids(fresher_than_days=2**53 - 1) == {old, new}
    assert ids(include_shared=True) == {old, new, shared}
    assert ids(agent_id="shared", include_shared=True) == {shared}
    assert ids(k=1, filter={"user_id": {"$ne": "bob"}}) == {old}
    assert ids(as_of=client.s.clock() - 1) == {old}
    assert client.expire({"older_than_days": 2**53 - 1})["matched_count"] == 0
    with pytest.raises(ValidationError):
        client.recall(filter={"x": {"$near": 1}})


# metadata

WRITTEN = {
    "tags": ["music", "é"], "title": "On violins", "project": "p", "session_id": "s", "speaker": "Bob",
    "event_time": "2024-05-01T12:00:00+02:00", "importance": 1, "entity_name": "alice", "extra": {"deep": [1, None]},
    "supersedes": ["x"],
}  # fmt: skip


def test_fields_given_in_metadata_are_fields_and_come_back_as_written(client: Client) -> None:
    id = client.remember(metadata=WRITTEN)["id"]
    memory = client.run(client.s.get(id))
    assert (memory.tags, memory.title, memory.project) == (["music", "é"], "On violins", "p")
    assert (memory.session_id, memory.speaker, memory.entity_name) == ("s", "Bob", "alice")
    assert (memory.event_time, memory.importance, memory.supersedes) == (1_714_557_600_000, 1.0, ["x"])
    assert to_wire(memory)["metadata"] == WRITTEN
    (hit,) = client.recall()["results"]
    assert hit["metadata"] == WRITTEN


ODD = {"tags": "music", "title": 5, "project": None, "session_id": "", "speaker": ["x"], "event_time": "soon",
       "importance": 7, "entity_name": {}, "supersedes": [1]}  # fmt: skip


def test_values_of_another_type_stay_plain_metadata(client: Client) -> None:
    assert fields_from_metadata(ODD) == {}
    id = client.remember(metadata=ODD)["id"]
    assert to_wire(client.run(client.s.get(id)))["metadata"] == ODD


@pytest.mark.parametrize(
    ("given_as", "meant"),
    [
        (1_700_000_000_000, 1_700_000_000_000), (0, 0), (-5, -5), (1.9, 1), ("1970-01-01", 0),
        ("1970-01-01T00:00:01", 1000), ("1970-01-01T01:00:00+01:00", 0), ("0001-01-01", -62_135_596_800_000),
        (True, None), (2**60, None), ("", None), ([], None), ("2024-13-01", None),
    ],
)  # fmt: skip
def test_moments(given_as: Any, meant: int | None) -> None:
    assert fields_from_metadata({"event_time": given_as}).get("event_time") == meant


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from(sorted(WRITTEN)), json_values))
def test_lifting_never_fails_and_only_gives_fields_of_a_draft(metadata: dict[str, Any]) -> None:
    Draft("agent", "semantic", "x", metadata=metadata, **fields_from_metadata(metadata))


def test_nothing_that_was_not_written_is_added(client: Client) -> None:
    client.remember()
    assert client.recall()["results"][0]["metadata"] == {}


def test_what_another_protocol_wrote_is_shown_in_metadata(client: Client) -> None:
    draft = Draft(
        "agent", "semantic", "a violin lesson", kind="lesson", title="T", tags=["x"], provenance={"dialect": "amp"}
    )
    client.run(client.s.engine.remember(WHO, draft))
    assert client.recall()["results"][0]["metadata"] == {"title": "T", "tags": ["x"], "kind": "lesson"}


# changing


def test_an_update_replaces_what_it_names_and_nothing_else(client: Client) -> None:
    id = client.remember(metadata={"tags": ["a"], "title": "T", "k": 1})["id"]
    assert client.update(id, content="Alice plays the cello")["metadata"] == {"tags": ["a"], "title": "T", "k": 1}
    changed = client.update(id, tags=["b"], confidence=0.3, expected_version=2)
    assert (changed["metadata"], changed["confidence"], changed["version"]) == (
        {"tags": ["b"], "title": "T", "k": 1},
        0.3,
        3,
    )
    replaced = client.update(id, metadata={"k": 2})
    assert replaced["metadata"] == {"k": 2}
    memory = client.run(client.s.get(id))
    assert (memory.title, memory.tags) == (None, [])
    assert client.recall("cello")["results"][0]["metadata"] == {"k": 2}
    with pytest.raises(Conflict):
        client.update(id, content="x", expected_version=3)
    with pytest.raises(ValidationError):
        client.update(id, expected_version=4)
    with pytest.raises(ValidationError):
        client.update(id, expires_at=client.s.clock())
    with pytest.raises(NotFound):
        client.update("01890000-0000-7000-8000-000000000000", content="x")


def test_whom_a_memory_is_shared_with_is_shown_and_can_change(client: Client) -> None:
    id = client.remember(privacy_intent={"retain": 7, "share_with": ["bob"], "user_consent_id": "c1"})["id"]
    before = client.run(client.s.get(id))
    told = client.update(id, privacy_intent={"share_with": ["carol", "*"]})
    assert told["privacy_intent"] == {"retain": 7, "share_with": ["carol", "*"], "user_consent_id": "c1"}
    assert (told["version"], told["expires_at"]) == (2, before.expires_at), "the promise stays"
    assert client.update(id, content="Alice plays the cello")["privacy_intent"] == told["privacy_intent"]
    told = client.update(id, privacy_intent={"share_with": []})
    assert told["privacy_intent"] == {"retain": 7, "user_consent_id": "c1"}
    plain = client.remember("nothing is said of this one")["id"]
    assert "privacy_intent" not in client.update(plain, confidence=0.5)
    for wrong in ({}, {"share_with": [""]}, {"share_with": ["bob"], "retain": 900}, {"share_with": "bob"}):
        with pytest.raises(ValidationError):
            client.update(plain, privacy_intent=wrong)


# batches


def requests(*fields: dict[str, Any]) -> list[RememberRequest]:
    return [parse(RememberRequest, {"agent_id": "agent", "type": "semantic", **f}) for f in fields]


def test_a_batch_gives_each_item_its_outcome_in_order(client: Client) -> None:
    batch = requests(
        {"content": "one"}, {"content": "two", "approval_required": True}, {"content": " "},
        {"content": "three", "idempotency_key": "k"}, {"content": "four", "idempotency_key": "k"},
        {"content": "\t", "approval_required": True},
    )  # fmt: skip
    done = client.run(client.wire.remember_many(batch))
    assert [d.code if isinstance(d, Fault) else d.pending_approval for d in done] == [
        False, True, "validation_error", False, "conflict", "validation_error"]  # fmt: skip
    assert sorted(m.content for m in client.run(client.s.list())) == ["one", "three"]


def test_a_batch_too_large_does_nothing_at_all(client: Client) -> None:
    for approval in (True, False):
        batch = requests(
            {"content": "x", "approval_required": True}, *[{"content": "x", "approval_required": approval}] * 1000
        )
        with pytest.raises(ValidationError):
            client.run(client.wire.remember_many(batch))
    with pytest.raises(ValidationError):
        client.run(client.wire.remember_many([]))
    assert client.run(client.s.engine.reviews.list(WHO)) == client.run(client.s.list()) == []


TYPES = ("semantic", "episodic", "procedural", "emotional")


@pytest.mark.parametrize("type", TYPES)
def test_a_type_comes_back_everywhere_as_it_went(client: Client, type: str) -> None:
    kept = client.remember("how the violin is tuned", type=type)["id"]
    (hit,) = client.recall("violin")["results"]
    assert (hit["id"], hit["type"]) == (kept, type)
    assert client.run(client.wire.get("agent", kept))["type"] == type
    assert [m["type"] for m in client.run(client.wire.list("agent", type=type))["memories"]] == [type]
    client.update(kept, content="how the viola is tuned")
    assert [version["type"] for version in client.run(client.wire.history("agent", kept))] == [type, type]


@pytest.mark.parametrize("types", [[type] for type in TYPES] + [["semantic", "emotional"], list(TYPES)])
def test_recall_finds_the_types_that_are_asked_for_and_no_other(client: Client, types: list[str]) -> None:
    ids = {type: client.remember(f"the {type} violin", type=type)["id"] for type in TYPES}
    found = client.recall("violin", types=types, k=10)["results"]
    assert {hit["id"] for hit in found} == {ids[type] for type in types}
    (best,) = client.recall("violin", types=types[:1], k=1)["results"]
    assert best["type"] == types[0], "before the cut to k"


@pytest.mark.parametrize("fusion", ["rrf", "max", "weighted"])
def test_the_fusion_that_is_asked_for_is_used_and_named(client: Client, fusion: str) -> None:
    """Of one store: by its rank, or by its own score."""
    for text in ("Alice plays the violin", "Bob mends violins", "Carol sells cellos"):
        client.remember(text)
    found = client.recall("who plays the violin", fusion=fusion, explain=True)
    assert found["fusion_used"] == fusion
    for rank, hit in enumerate(found["results"]):
        assert hit["score"] == pytest.approx(1 / (60 + rank) if fusion == "rrf" else hit["explain"]["blend"])


def test_the_type_is_pinned_when_it_is_written(client: Client) -> None:
    kept = client.remember(type="episodic")["id"]
    with pytest.raises(ValidationError, match="type"):
        client.update(kept, type="semantic")
    assert client.update(kept, metadata={"type": "semantic"})["type"] == "episodic"


OF_TYPES = {
    "episodic": {"event_time": "2026-05-20", "location": "Rome", "participants": ["Bob", "Carol"]},
    "emotional": {"sentiment": "negative", "valence": -0.5, "arousal": 0.9, "emotion": "fear", "target": "flights"},
}


def test_what_only_one_type_has_survives_in_metadata_and_filters(client: Client) -> None:
    ids = {type: client.remember("the flight", type=type, metadata=fields)["id"] for type, fields in OF_TYPES.items()}
    client.remember("the flight of a bird")
    for type, fields in OF_TYPES.items():
        assert client.run(client.wire.get("agent", ids[type]))["metadata"] == fields
    for filter, type in [
        ({"location": "Rome"}, "episodic"), ({"participants": "Carol"}, "episodic"),
        ({"participants": {"$contains": "Bob"}}, "episodic"), ({"valence": {"$lt": 0}}, "emotional"),
        ({"sentiment": ["negative", "mixed"]}, "emotional"), ({"target": {"$exists": True}}, "emotional"),
    ]:  # fmt: skip
        assert [hit["id"] for hit in client.recall("flight", filter=filter)["results"]] == [ids[type]], filter


def test_forget_honours_the_user(client: Client) -> None:
    ids = {user: client.remember("plays the violin", user_id=user)["id"] for user in ("alice", "bob")}
    both = list(ids.values())
    for fields in ({"ids": both}, {"filter": {"type": "semantic"}}, {"ids": both, "hard_delete": True}):
        assert client.forget(user_id="carol", **fields)["forgotten_ids"] == []
    assert client.forget(user_id="alice", filter={"type": "semantic"})["forgotten_ids"] == [ids["alice"]]
    assert [hit["user_id"] for hit in client.recall("violin")["results"]] == ["bob"]
    assert client.forget(user_id="bob", ids=both, hard_delete=True)["forgotten_ids"] == [ids["bob"]]


def test_every_remember_is_in_the_audit(client: Client) -> None:
    kept = [client.remember(text)["id"] for text in ("one", "two")]
    batch = client.run(client.wire.remember_many(requests({"content": "three"})))
    entries = client.run(client.wire.audit(operation="remember"))["entries"]
    assert [(e["agent_id"], e["principal"]) for e in entries] == [("agent", WHO.name)] * 3
    assert [e["payload"][0]["memory_id"] for e in entries] == [*kept, batch[0].id]


def test_every_recall_is_in_the_audit(client: Client) -> None:
    kept = client.remember()["id"]
    client.recall("violin")
    client.recall("what nobody ever said", filter={"k": "nothing"})
    client.run(client.s.engine.flush())
    entries = client.run(client.wire.audit(operation="recall"))["entries"]
    assert [(entry["agent_id"], entry["principal"]) for entry in entries] == [("agent", WHO.name)] * 2
    assert kept in json.dumps(entries[0]["payload"])
    assert kept not in json.dumps(entries[1]["payload"])
    assert "violin" not in json.dumps(entries)


def test_a_damaged_chain_is_told_with_its_first_bad_entry(tmp_path: Path) -> None:
    clock = FakeClock()
    path = tmp_path / "commonplace.db"
    with open_subject(SqliteStore(path, clock), clock) as over:
        client = Client(over)
        for i in range(3):
            client.remember(f"fact {i}")
        told = client.run(client.wire.verify_audit())
        assert (told["ok"], told["entries"], len(told["head"]), "first_bad" in told) == (True, 3, 64, False)
    with raw_database(path) as db:
        db.drop_guards()
        db.change("UPDATE audit SET principal = 'nobody' WHERE n = 2")
    with open_subject(SqliteStore(path, clock), clock) as over:
        client = Client(over)
        told = client.run(client.wire.verify_audit())
        check("memorywire/operations/audit.verify.response", told)
        assert (told["ok"], told["first_bad"]) == (False, 2)
        assert "header was changed" in told["problem"]
