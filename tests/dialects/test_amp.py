"""AMP's operations over both stores: what the document says, and what we decided where it is silent."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from tampering import traces

from commonplace.dialects.amp import Amp, envelope
from commonplace.dialects.amp.operations import agent_state
from commonplace.dialects.amp.records import to_draft, to_record
from commonplace.dialects.memorywire import Memorywire, to_wire
from commonplace.engine.memory.write import new_memory
from commonplace.engine.types import Draft
from commonplace.serve.routes import STATUS
from commonplace.stores.sqlite import SqliteStore
from commonplace.testing.subject import DAY_MS, WHO, Subject, open_subject
from commonplace.wire import errors
from commonplace.wire.canonical import is_uuid
from commonplace.wire.errors import Conflict, Forbidden, NotFound, PayloadTooLarge, ValidationError
from commonplace.wire.models import RecallRequest, RememberRequest
from commonplace.wire.record import Principal
from commonplace.wire.validate import check, portable_schema, schema, schema_names

LESSON = {
    "type": "lesson", "title": "Check array bounds before access", "severity": "warning",
    "content": "Always verify array indices are within bounds", "tags": ["javascript", "arrays", "defensive"],
}  # fmt: skip
CHECKPOINT = {"type": "checkpoint", "agent": "radarr", "working_on": "Debugging the auth flow"}
AMP_SCHEMAS = [name for name in schema_names() if name.startswith("amp/")]
OPERATIONS = ("store", "search", "get", "delete", "list", "status", "agent_status")


class Caller:
    """AMP for one caller, every answer checked against its schema."""

    def __init__(self, subject: Subject, run: Callable[[Any], Any], who: Principal | None = None) -> None:
        self.subject, self.run, self.who = subject, run, who or Principal()

    def __call__(self, operation: str, /, **request: Any) -> dict[str, Any]:
        answer: dict[str, Any] = self.run(getattr(Amp(self.subject.engine, self.who), operation)(request))
        check(f"amp/operations/{operation}.response", answer)
        for record in [
            answer.get("record"),
            *answer.get("records", ()),
            *(r["record"] for r in answer.get("results", ())),
        ]:
            if record is not None:
                kind = record["type"]
                check(f"amp/types/{kind if f'amp/types/{kind}' in AMP_SCHEMAS else 'record'}", record)
        return answer

    def store(self, record: dict[str, Any] | None = None, **fields: Any) -> str:
        return str(self("store", record={**(record or LESSON), **fields})["id"])

    def get(self, id: str, **more: Any) -> dict[str, Any]:
        record: dict[str, Any] = self("get", id=id, **more)["record"]
        return record

    def titles(self, operation: str = "list", /, **request: Any) -> list[str]:
        answer = self(operation, **request)
        records = answer.get("records") or [r["record"] for r in answer.get("results", ())]
        return [r.get("title", r["content"]) for r in records]

    def as_(self, *agents: str, role: str = "writer", tenant: str = "local") -> Caller:
        return Caller(self.subject, self.run, Principal("someone", tenant, role, agents))  # type: ignore[arg-type]


@pytest.fixture
def amp(over: tuple[Subject, Callable[[Any], Any]]) -> Caller:
    return Caller(*over)


# store


def test_a_lesson_comes_back_as_it_was_stored(amp: Caller) -> None:
    answer = amp("store", operation="store", record=LESSON)
    assert answer["created"] is True
    record = amp.get(answer["id"])
    assert record == {**LESSON, "id": answer["id"], "created_at": amp.subject.clock.now}
    assert answer["id"].startswith("lesson_")


def test_all_three_types_come_back_with_their_fields(amp: Caller) -> None:
    state = {
        "decisions": ["use OIDC"],
        "blockers": ["no key"],
        "artifacts": ["auth.py"],
        "flags": ["BLOCKED"],
        "mood": 1,
    }
    checkpoint = {**CHECKPOINT, "state": state, "session_id": "s1", "project": "atlas"}
    snippet = {
        "type": "snippet", "content": "def f(): ...", "file_path": "a/b.py", "language": "python", "start_line": 1,
        "end_line": 2, "repo": "atlas",
    }  # fmt: skip
    for given_record in (checkpoint, snippet):
        record = amp.get(amp.store(given_record))
        assert {name: record[name] for name in given_record} == given_record


def test_unknown_types_and_fields_round_trip(amp: Caller) -> None:
    odd = {
        "type": "run/result 7", "content": "exit 0", "state": "open", "severity": 5, "nested": {"a": [1, {"b": None}]},
        "metadata": {"x": 1}, "tags": [], "confidence": 1.0, "title": "", "null": None, "status": "mine", "version": 9,
    }  # fmt: skip
    id = amp.store(odd)
    assert "/" not in id
    assert " " not in id
    record = amp.get(id)
    assert record == {**odd, "id": id, "created_at": amp.subject.clock.now}


@pytest.mark.parametrize(
    ("record", "says"),
    [
        ({}, "record.type is required"),
        ({"type": "lesson", "content": "x"}, "record.title is required"),
        ({"type": "lesson", "title": "x"}, "record.content is required"),
        ({"type": "checkpoint", "working_on": "x"}, "record.agent is required"),
        ({"type": "checkpoint", "agent": "a"}, "record.working_on is required"),
        ({"type": "snippet"}, "record.content is required"),
        ({"type": "metric"}, "record.content is required"),
        ({**LESSON, "severity": "loud"}, "record.severity must be one of info, warning, critical"),
        ({**LESSON, "tags": "a,b"}, "record.tags must be a list"),
        ({**LESSON, "agent": None}, "record.agent must be"),
        ({**LESSON, "expires_at": "soon"}, "record.expires_at must be a whole number"),
        ({**LESSON, "expires_at": 5}, "expires_at must be in the future"),
        ({**LESSON, "content": " \n"}, "content must not be blank"),
        ({**CHECKPOINT, "state": []}, "record.state must be an object"),
        *(
            ({**CHECKPOINT, "state": {name: "IDLE"}}, f"record.state.{name} must be a list")
            for name in ("decisions", "blockers", "artifacts", "flags")
        ),
        ("text", "record must be an object"),
    ],
)
def test_a_record_that_is_wrong_is_refused_and_nothing_is_written(amp: Caller, record: Any, says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        amp("store", record=record)
    assert amp("list")["total"] == 0


def test_content_has_a_documented_limit(amp: Caller) -> None:
    amp.store(content="x" * 262_144)
    with pytest.raises(PayloadTooLarge):
        amp.store(content="x" * 262_145)
    assert amp("status")["capabilities"]["max_content_length"] == 262_144


def test_a_checkpoint_without_content_is_found_by_its_task_and_state(amp: Caller) -> None:
    state = {"blockers": ["Missing API key"], "flags": ["BLOCKED"], "artifacts": ["auth.py"]}
    id = amp.store(CHECKPOINT, state={**state, "decisions": ["use OIDC", "no cookies"]})
    assert amp.get(id)["content"].splitlines() == [
        "Debugging the auth flow",
        "Decisions: use OIDC; no cookies",
        "Blockers: Missing API key",
        "Artifacts: auth.py",
        "Flags: BLOCKED",
    ]
    assert amp("search", query="API key missing", agent="radarr")["results"][0]["id"] == id
    assert amp.get(amp.store(CHECKPOINT, content="in my words"))["content"] == "in my words"


def test_an_unknown_id_creates_and_a_known_one_replaces_everything(amp: Caller) -> None:
    first = amp("store", record={**LESSON, "id": "bounds-1", "project": "atlas", "extra": 1, "expires_at": 1 << 50})
    assert first == {"success": True, "id": "bounds-1", "created": True}
    born = amp.subject.clock.now
    amp.subject.clock.advance(1000)
    new = {"id": "bounds-1", "type": "lesson", "title": "Bounds", "content": "Check them."}
    assert amp("store", record=new) == {"success": True, "id": "bounds-1", "created": False}
    assert amp.get("bounds-1") == {**new, "created_at": born, "updated_at": born + 1000}
    assert amp("list")["total"] == 1
    assert amp("search", query="Check them")["total"] == 1


@pytest.mark.parametrize("form", ["{shown}", "{uuid}", "anything_{uuid}", "odd_prefix_{uuid}", "LESSON_{upper}"])
def test_every_form_of_a_given_id_names_the_record(amp: Caller, form: str) -> None:
    shown = amp.store()
    uuid = shown.removeprefix("lesson_")
    assert is_uuid(uuid)
    assert shown == f"lesson_{uuid}"
    ref = form.format(shown=shown, uuid=uuid, upper=uuid.upper())
    assert amp.get(ref)["id"] == shown
    answer = amp("store", record={**LESSON, "id": ref, "title": "New"})
    assert answer == {"success": True, "id": shown, "created": False}
    assert amp.get(shown)["title"] == "New"
    assert amp("delete", id=ref)["deleted"] is True


def test_a_record_can_be_stored_again_as_it_was_read(amp: Caller) -> None:
    id = amp.store(LESSON, agent="alice", project="atlas", user_id="bob", confidence=0.5, source="chat", extra=[1])
    record = amp.get(id)
    amp.subject.clock.advance(5)
    assert amp("store", record=record)["created"] is False
    again = amp.get(id)
    assert again.pop("updated_at") == amp.subject.clock.now
    assert again == record


def test_a_forgotten_id_names_a_new_record(amp: Caller) -> None:
    amp.store(id="x")
    amp("delete", id="x")
    assert amp("store", record={**LESSON, "id": "x"})["created"] is True
    assert amp("list")["total"] == 1


def test_an_expired_record_is_gone_and_its_id_free(amp: Caller) -> None:
    clock = amp.subject.clock
    amp.store(id="x", expires_at=clock.now + 1000)
    assert amp.get("x")["expires_at"] == clock.now + 1000
    clock.advance(1000)
    with pytest.raises(NotFound):
        amp.get("x")
    assert amp("search", query="array bounds")["results"] == amp("list")["records"] == []
    assert amp("store", record={**LESSON, "id": "x"})["created"] is True


def test_agents_may_use_the_same_id_and_then_must_say_whose(amp: Caller) -> None:
    amp.store(id="x", agent="alice", title="of Alice")
    assert amp("store", record={**LESSON, "id": "x", "agent": "bob", "title": "of Bob"})["created"] is True
    assert amp.get("x", agent="alice")["title"] == "of Alice"
    assert amp.get("x", agent="bob")["title"] == "of Bob"
    for operation in ("get", "delete"):
        with pytest.raises(Conflict, match="alice, bob"):
            amp(operation, id="x")
    assert amp("delete", id="x", agent="bob")["deleted"] is True
    assert amp.get("x")["title"] == "of Alice"


def test_a_known_id_without_agent_is_replaced_where_it_lives(amp: Caller) -> None:
    amp.store(id="x", agent="alice")
    assert amp("store", record={**LESSON, "id": "x", "title": "New"})["created"] is False
    (record,) = amp("list", agent="alice")["records"]
    assert (record["title"], record["agent"]) == ("New", "alice")
    assert amp("list", agent="shared")["total"] == 0


def test_a_record_stays_with_its_agent(amp: Caller) -> None:
    id = amp.store(agent="alice")
    with pytest.raises(Conflict, match="a record of agent alice"):
        amp.store(id=id, agent="bob")
    assert amp("list")["total"] == 1


def test_many_stores_under_one_id_at_once_leave_one_record(amp: Caller) -> None:
    import asyncio

    async def all_at_once() -> list[dict[str, Any]]:
        one = Amp(amp.subject.engine, Principal())
        return await asyncio.gather(*(one.store({"record": {**LESSON, "id": "x", "n": n}}) for n in range(50)))

    answers = amp.run(all_at_once())
    assert sorted(a["created"] for a in answers) == [False] * 49 + [True]
    assert amp("list")["total"] == 1


def test_replacing_keeps_a_promise_of_erasure_made_elsewhere(amp: Caller) -> None:
    clock = amp.subject.clock
    request = {"agent_id": "alice", "type": "semantic", "content": "Bob's address", "privacy_intent": {"retain": 30}}
    id = amp.run(Memorywire(amp.subject.engine, Principal()).remember(RememberRequest(**request))).id
    clock.advance(DAY_MS)
    amp("store", record={"type": "note", "id": id, "agent": "alice", "content": "moved"})
    memory = amp.run(amp.subject.engine.get(Principal(), "alice", id))
    assert (memory.privacy, memory.expires_at) == ({"retain": 30}, clock.now + 29 * DAY_MS)


def test_a_store_that_waits_for_approval_says_so_and_cannot_be_read(amp: Caller) -> None:
    answer = amp("store", record={**LESSON, "id": "x"}, approval_required=True)
    review = answer.pop("review_id")
    assert answer == {"success": True, "id": "x", "created": True, "pending_approval": True}
    assert amp.run(amp.subject.engine.reviews.get(WHO, review))["status"] == "pending"
    assert amp("list")["total"] == 0
    with pytest.raises(NotFound):
        amp.get("x")
    (review,) = amp.run(amp.subject.engine.reviews.list(Principal()))
    check("memorywire/operations/remember", review["request"])
    amp.run(Memorywire(amp.subject.engine, Principal()).decide(review["id"], True, "alice"))
    assert amp.get("x")["title"] == LESSON["title"]
    again = amp("store", record={**LESSON, "id": "x", "title": "Another"}, approval_required=True)
    assert (again["created"], again["pending_approval"], amp.get("x")["title"]) == (False, True, LESSON["title"])
    amp.run(Memorywire(amp.subject.engine, Principal()).decide(again["review_id"], True, "alice"))
    assert amp.get("x")["title"] == "Another"


def test_a_record_approved_with_an_edit_is_still_that_record(amp: Caller) -> None:
    amp("store", record={**LESSON, "id": "x"}, approval_required=True)
    (review,) = amp.run(amp.subject.engine.reviews.list(Principal()))
    request = {**review["request"], "content": "what the reviewer made of it"}
    amp.run(Memorywire(amp.subject.engine, Principal()).decide(review["id"], True, "alice", request=request))
    record = amp.get("x")
    assert (record["id"], record["type"], record["title"]) == ("x", "lesson", LESSON["title"])
    assert record["content"] == "what the reviewer made of it"
    assert "agent" not in record
    assert "kind" not in record


# search


def fill(amp: Caller) -> None:
    """Six records of three agents, types and projects."""
    for agent, kind, project, tags, title in (
        (None, "lesson", "atlas", ["db", "ops"], "postgres pooling"),
        (None, "lesson", None, ["db"], "postgres vacuum"),
        ("alice", "lesson", "atlas", ["db", "ops", "night"], "postgres backup"),
        ("alice", "note", None, [], "postgres notes of Alice"),
        ("bob", "lesson", "borealis", ["ops"], "postgres replicas"),
        ("bob", "checkpoint", None, [], "postgres upgrade"),
    ):
        record: dict[str, Any] = {
            "type": kind,
            "title": title,
            "content": f"about {title}",
            "tags": tags,
            "working_on": title,
        }
        record |= {name: value for name, value in (("agent", agent), ("project", project)) if value}
        amp.store(record)
        amp.subject.clock.advance(10)


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({}, "pooling vacuum backup Alice replicas upgrade"),
        ({"type": "lesson"}, "pooling vacuum backup replicas"),
        ({"type": "checkpoint"}, "upgrade"),
        ({"tags": ["db"]}, "pooling vacuum backup"),
        ({"tags": ["db", "ops"]}, "pooling backup"),
        ({"tags": ["db", "ops", "night"], "type": "lesson"}, "backup"),
        ({"project": "atlas"}, "pooling backup"),
        ({"project": "atlas", "tags": ["night"]}, "backup"),
        ({"agent": "alice"}, "pooling vacuum backup Alice"),
        ({"agent": "bob", "type": "lesson"}, "pooling vacuum replicas"),
        ({"agent": "shared"}, "pooling vacuum"),
        ({"agent": "nobody"}, "pooling vacuum"),
        ({"type": "nothing"}, ""),
    ],
)
def test_search_filters(amp: Caller, filters: dict[str, Any], found: str) -> None:
    fill(amp)
    answer = amp("search", query="postgres", **filters)
    assert {r["record"]["title"].split()[-1] for r in answer["results"]} == set(found.split())
    assert answer["total"] == len(found.split())
    for result in answer["results"]:
        assert result["id"] == result["record"]["id"]
        assert amp.get(result["id"])["title"] == result["record"]["title"]


def test_search_finds_the_right_one_first_and_counts_before_the_limit(amp: Caller) -> None:
    fill(amp)
    answer = amp("search", query="postgres vacuum", limit=2)
    assert answer["results"][0]["record"]["title"] == "postgres vacuum"
    assert (len(answer["results"]), answer["total"]) == (2, 6)
    scores = [r["score"] for r in amp("search", query="postgres vacuum")["results"]]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    assert scores[0] > scores[-1]
    for result in answer["results"]:
        assert result["id"] == result["record"]["id"]
        assert result["record"] == amp.get(result["id"])


def test_min_score_cuts_at_the_scores_that_are_shown(amp: Caller) -> None:
    fill(amp)
    every = amp("search", query="postgres vacuum", min_score=0)
    second = every["results"][1]["score"]
    above = amp("search", query="postgres vacuum", min_score=round(second + 0.0001, 4))
    assert [r["id"] for r in above["results"]] == [every["results"][0]["id"]]
    assert above["total"] == 1
    assert every["results"][1] in amp("search", query="postgres vacuum", min_score=second)["results"]
    at_least = len([result for result in every["results"] if result["score"] >= second])
    assert amp("search", query="postgres vacuum", min_score=second, limit=1)["total"] == at_least >= 2
    assert amp("search", query="postgres vacuum", min_score=1)["total"] in (0, 1)


def test_the_default_limit_is_ten(amp: Caller) -> None:
    for n in range(12):
        amp.store(title=f"lesson {n}")
    answer = amp("search", query="array bounds")
    assert (len(answer["results"]), answer["total"]) == (10, 12)


def test_only_what_a_search_shows_counts_as_recalled(amp: Caller) -> None:
    ids = [amp.store(title=f"lesson {n}") for n in range(4)]
    shown = amp("search", query="array bounds", limit=1)["results"][0]["id"]
    amp.run(amp.subject.engine.flush())
    recalls = {id: amp.run(amp.subject.engine.find(Principal(), id)).recalls for id in ids}
    assert recalls == {id: int(id == shown) for id in ids}


def test_search_on_an_empty_store(amp: Caller) -> None:
    assert amp("search", query="anything")["results"] == []
    with pytest.raises(ValidationError, match="must not be blank"):
        amp.store() and amp("search", query="  ")


# get, delete, list


def test_a_missing_get_is_not_found_and_a_missing_delete_is_not_an_error(amp: Caller) -> None:
    for ref in ("nope", "lesson_a1b2c3d4", "lesson_01a1df96-2d54-71b4-ad3b-569bfbb330f8"):
        with pytest.raises(NotFound, match=f"no record {ref}"):
            amp.get(ref)
        assert amp("delete", id=ref) == {"success": True, "deleted": False}


def test_a_deleted_record_is_invisible_everywhere_but_in_its_history(amp: Caller) -> None:
    id = amp.store()
    assert amp("delete", operation="delete", id=id) == {"success": True, "deleted": True}
    assert amp("delete", id=id)["deleted"] is False
    with pytest.raises(NotFound):
        amp.get(id)
    assert (
        amp("list")["total"] == amp("search", query="array bounds")["total"] == amp("status")["stats"]["lessons"] == 0
    )
    uuid = id.removeprefix("lesson_")
    assert [m.status for m in amp.run(amp.subject.store.history("local", uuid))] == ["live", "deleted"]


@pytest.mark.parametrize(
    ("request_", "found", "total", "more"),
    [
        ({}, "upgrade replicas Alice backup vacuum pooling", 6, False),
        ({"order": "asc"}, "pooling vacuum backup Alice replicas upgrade", 6, False),
        ({"limit": 2}, "upgrade replicas", 6, True),
        ({"limit": 2, "offset": 4}, "vacuum pooling", 6, False),
        ({"limit": 3, "offset": 1, "order": "asc"}, "vacuum backup Alice", 6, True),
        ({"offset": 6}, "", 6, False),
        ({"offset": 60}, "", 6, False),
        ({"agent": "alice"}, "Alice backup", 2, False),
        ({"agent": "shared"}, "vacuum pooling", 2, False),
        ({"agent": "nobody"}, "", 0, False),
        ({"type": "checkpoint", "agent": "bob", "limit": 1}, "upgrade", 1, False),
        ({"project": "atlas"}, "backup pooling", 2, False),
        ({"tags": ["db", "ops"]}, "backup pooling", 2, False),
        ({"tags": ["db", "ops"], "agent": "alice", "type": "lesson", "project": "atlas"}, "backup", 1, False),
    ],
)
def test_list(amp: Caller, request_: dict[str, Any], found: str, total: int, more: bool) -> None:
    fill(amp)
    answer = amp("list", **request_)
    assert [r["title"].split()[-1] for r in answer["records"]] == found.split()
    assert (answer["total"], answer["has_more"]) == (total, more)


def test_a_replaced_record_keeps_its_place_in_a_list(amp: Caller) -> None:
    for id in ("first", "second", "third"):
        amp.store(id=id)
        amp.subject.clock.advance(10)
    amp.store(id="second", title="Replaced")
    assert [record["id"] for record in amp("list")["records"]] == ["third", "second", "first"]
    assert [record["id"] for record in amp("list", order="asc")["records"]] == ["first", "second", "third"]


@pytest.mark.slow
def test_list_pages_through_more_than_a_thousand(amp: Caller) -> None:
    amp.run(amp.subject.remember_all([Draft("alice", "semantic", f"note {n}") for n in range(1000)]))
    amp.run(amp.subject.remember_all([Draft("alice", "semantic", f"note {n}") for n in range(1000, 1050)]))
    answer = amp("list", order="asc", offset=1005, limit=10)
    assert (len(answer["records"]), answer["total"], answer["has_more"]) == (10, 1050, True)
    seen = {r["id"] for offset in (0, 1000) for r in amp("list", offset=offset, limit=1000)["records"]}
    assert len(seen) == 1050
    assert len(amp("list")["records"]) == 20
    assert amp("search", query="note", limit=1000)["total"] == 1000
    assert amp("search", query="note", limit=1)["total"] == 1000


@pytest.mark.parametrize(
    ("operation", "request_", "says"),
    [
        ("store", {}, "record is required"),
        ("store", {"record": LESSON, "recrod": 1}, "unknown field 'recrod' in store; did you mean 'record'"),
        ("search", {"query": "x", "top": 3}, "unknown field 'top'"),
        ("search", {}, "query is required"),
        ("search", {"query": "x", "limit": 0}, "limit must be a whole number from 1 to 1000"),
        ("search", {"query": "x", "min_score": 2}, "min_score must be a number from 0 to 1"),
        ("search", {"query": "x", "min_score": -0.1}, "min_score must be a number from 0 to 1"),
        ("search", {"query": "x", "tags": [f"t{n}" for n in range(65)]}, "at most 64"),
        ("search", {"query": "x", "operation": "list"}, "operation must be 'search'"),
        ("list", {"verbose": 1}, "unknown field 'verbose'"),
        ("get", {"id": "x", "verbose": 1}, "unknown field 'verbose'"),
        ("agent_status", {"agent": "x", "verbose": 1}, "unknown field 'verbose'"),
        ("list", {"order": "up"}, "order must be one of desc, asc"),
        ("list", {"offset": -1}, "offset must be a whole number of at least 0"),
        ("get", {}, "id is required"),
        ("get", {"id": ""}, "id must be non-empty text"),
        ("delete", {"id": "x", "hard": True}, "unknown field 'hard'"),
        ("status", {"verbose": 1}, "unknown field 'verbose'"),
        ("agent_status", {}, "agent is required"),
    ],
)
def test_envelopes_are_closed_and_checked(amp: Caller, operation: str, request_: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        amp(operation, **request_)


# status and agent_status


def test_status_counts_what_the_caller_may_read(amp: Caller) -> None:
    empty = amp("status")
    assert empty["healthy"] is True
    assert empty["protocol"] == "AMP/0.1"
    assert empty["stats"]["total_records"] == 0
    assert empty["capabilities"]["supported_types"] == ["lesson", "checkpoint", "snippet"]
    assert empty["capabilities"]["embedding_model"] == empty["stats"]["embedding_model"]
    assert str(empty["stats"]["embedding_model"]).startswith("hashing")
    fill(amp)
    stats = amp("status")["stats"]
    assert (stats["lessons"], stats["checkpoints"], stats["snippets"], stats["total_records"]) == (4, 1, 0, 6)
    assert amp.as_("alice")("status")["stats"]["total_records"] == 2


@pytest.mark.parametrize(
    ("state", "status"),
    [
        (None, "in_progress"),
        ({}, "in_progress"),
        ({"flags": ["IDLE"]}, "idle"),
        ({"flags": ["IN_PROGRESS"]}, "in_progress"),
        ({"flags": ["in-progress", "IDLE"]}, "in_progress"),
        ({"flags": ["BLOCKED"]}, "blocked"),
        ({"flags": ["IDLE", "blocked"]}, "blocked"),
        ({"blockers": ["no key"]}, "blocked"),
        ({"blockers": ["no key"], "flags": ["IN_PROGRESS"]}, "blocked"),
        ({"blockers": [], "flags": ["IDLE"]}, "idle"),
    ],
)
def test_agent_status_comes_from_the_newest_checkpoint(amp: Caller, state: Any, status: str) -> None:
    assert amp("agent_status", agent="radarr") == {
        "success": True, "agent": "radarr", "status": "idle", "checkpoint_count": 0, "current_task": None,
        "last_updated": None,
    }  # fmt: skip
    amp.store(CHECKPOINT, working_on="earlier", state={"flags": ["BLOCKED"]})
    now = amp.subject.clock.advance(10)
    amp.store(CHECKPOINT, **({"state": state} if state is not None else {}))
    amp.store(LESSON, agent="radarr")
    assert amp("agent_status", agent="radarr") == {
        "success": True, "agent": "radarr", "status": status, "checkpoint_count": 2,
        "current_task": "Debugging the auth flow", "last_updated": now,
    }  # fmt: skip


def test_a_replaced_checkpoint_was_updated_when_it_was_replaced(amp: Caller) -> None:
    amp.store(CHECKPOINT, id="auth")
    now = amp.subject.clock.advance(10)
    amp.store(CHECKPOINT, id="auth", working_on="Reviewing the auth flow")
    status = amp("agent_status", agent="radarr")
    assert (status["checkpoint_count"], status["current_task"]) == (1, "Reviewing the auth flow")
    assert status["last_updated"] == now


def test_a_checkpoint_of_another_protocol_has_no_state_to_read() -> None:
    memory = new_memory(Principal(), Draft("a", "episodic", "x", kind="checkpoint", metadata={"state": "odd"}), 1)
    assert agent_state(memory) == "in_progress"


# whose


def test_a_record_without_agent_is_shared_and_a_checkpoint_belongs_to_its_agent(amp: Caller) -> None:
    fill(amp)
    alice, bob = amp.as_("alice", "shared"), amp.as_("bob", "shared")
    assert set(alice.titles()) == {"postgres notes of Alice", "postgres backup", "postgres vacuum", "postgres pooling"}
    assert set(bob.titles("search", query="postgres")) == {
        "postgres upgrade", "postgres replicas", "postgres vacuum", "postgres pooling"}  # fmt: skip
    assert "agent" not in amp("list", agent="shared")["records"][0]
    assert amp.get(amp.store(agent="shared"))["agent"] == "shared"


def test_nobody_reads_changes_or_learns_of_what_is_not_theirs(amp: Caller) -> None:
    id = amp.store(agent="alice", id="plan")
    uuid = amp.run(amp.subject.engine.find(Principal(), id)).id
    for stranger in (amp.as_("bob"), amp.as_("alice", tenant="other"), amp.as_("*", tenant="third", role="admin")):
        messages = set()
        for ref in ("plan", uuid, f"lesson_{uuid}"):
            with pytest.raises(NotFound) as refused:
                stranger.get(ref)
            messages.add(refused.value.message.replace(ref, "ID"))
            assert stranger("delete", id=ref)["deleted"] is False
        assert messages == {"no record ID"}
        assert stranger("search", query="array bounds")["total"] == stranger("list")["total"] == 0
        assert stranger("status")["stats"]["total_records"] == 0
        agent = "bob" if stranger.who.may_use("bob") else "alice"
        assert stranger("store", record={**LESSON, "id": f"lesson_{uuid}", "agent": agent})["created"] is True
    assert amp.as_("bob")("search", query="array", agent="bob")["total"] == 1
    bob = amp.as_("bob")
    for operation, request in (
        ("search", {"query": "x", "agent": "alice"}), ("list", {"agent": "alice"}),
        ("get", {"id": "x", "agent": "alice"}),
        ("delete", {"id": "x", "agent": "alice"}), ("agent_status", {"agent": "alice"}),
        ("store", {"record": {**LESSON, "agent": "alice"}}), ("store", {"record": LESSON}),
    ):  # fmt: skip
        with pytest.raises(Forbidden):
            bob(operation, **request)
    with pytest.raises(Forbidden):
        amp.as_("alice", role="reader")("store", record={**LESSON, "agent": "alice"})
    with pytest.raises(Forbidden):
        amp.as_("alice", role="reader")("delete", id="plan")
    assert amp.get("plan")["title"] == LESSON["title"]


# the other protocols


def test_what_amp_stored_is_found_through_memorywire_with_its_fields(amp: Caller) -> None:
    expires = amp.subject.clock.now + DAY_MS
    id = amp.store(
        LESSON, agent="alice", project="atlas", expires_at=expires, user_id="bob", importance=0.7, origin={"pr": 7}
    )
    wire = Memorywire(amp.subject.engine, Principal())
    (hit,) = amp.run(wire.recall(RecallRequest(agent_id="alice", query="array bounds", user_id="bob"))).results
    assert (hit.type, hit.content, hit.user_id, hit.expires_at) == ("semantic", LESSON["content"], "bob", expires)
    assert hit.metadata == {
        "title": LESSON["title"], "tags": LESSON["tags"], "project": "atlas", "kind": "lesson", "severity": "warning",
        "importance": 0.7, "origin": {"pr": 7},
    }  # fmt: skip
    assert f"lesson_{hit.id}" == id
    filtered = RecallRequest(
        agent_id="alice", query="array", filter={"origin.pr": 7, "tags": "arrays", "severity": "warning"}
    )
    assert [h.id for h in amp.run(wire.recall(filtered)).results] == [hit.id]
    checkpoint = amp.store(CHECKPOINT, state={"flags": ["IDLE"]}).removeprefix("checkpoint_")
    shown = to_wire(amp.run(amp.subject.engine.get(Principal(), "radarr", checkpoint)))
    assert shown["type"] == "episodic"
    assert shown["metadata"] == {
        "working_on": CHECKPOINT["working_on"],
        "state": {"flags": ["IDLE"]},
        "kind": "checkpoint",
    }
    snippet = amp.store({"type": "snippet", "content": "x = 1", "file_path": "a.py"}).removeprefix("snippet_")
    assert to_wire(amp.run(amp.subject.engine.get(Principal(), "shared", snippet)))["source"] == "a.py"


def test_what_memorywire_remembered_is_found_through_amp_with_its_fields(amp: Caller) -> None:
    expires = amp.subject.clock.now + DAY_MS
    metadata = {
        "title": "Pooling",
        "tags": ["db"],
        "project": "atlas",
        "session_id": "s1",
        "stars": 5,
        "deep": {"a": [1]},
    }
    request = {"agent_id": "alice", "type": "procedural", "content": "how to pool connections", "user_id": "bob",
               "metadata": metadata, "confidence": 0.5, "source": "chat", "expires_at": expires}  # fmt: skip
    id = amp.run(Memorywire(amp.subject.engine, Principal()).remember(RememberRequest(**request))).id
    (result,) = amp("search", query="pool connections", tags=["db"], project="atlas", type="procedural")["results"]
    assert result["record"] == {
        "id": f"procedural_{id}", "type": "procedural", "agent": "alice", "content": "how to pool connections",
        "created_at": amp.subject.clock.now, "user_id": "bob", "confidence": 0.5, "source": "chat",
        "expires_at": expires, **metadata,
    }  # fmt: skip
    assert amp("list", agent="alice")["records"] == [result["record"]]
    assert amp.get(id) == result["record"]


def test_metadata_under_names_amp_uses_otherwise_is_shown_beside(amp: Caller) -> None:
    metadata = {"id": "theirs", "type": "theirs", "agent": 7, "created_at": "then", "metadata": {"own": 1}, "plain": 1}
    request = RememberRequest(agent_id="alice", type="semantic", content="x", metadata=metadata)
    id = amp.run(Memorywire(amp.subject.engine, Principal()).remember(request)).id
    record = amp.get(id)
    assert (record["id"], record["type"], record["agent"], record["plain"]) == (
        f"semantic_{id}",
        "semantic",
        "alice",
        1,
    )
    assert record["metadata"] == {"own": 1, "id": "theirs", "type": "theirs", "agent": 7, "created_at": "then"}


@pytest.mark.parametrize("kind", ["semantic", "episodic", "procedural", "emotional"])
def test_a_type_that_is_one_of_the_four_is_that_one(amp: Caller, kind: str) -> None:
    id = amp.store({"type": kind, "content": "plain words"})
    memory = amp.run(amp.subject.engine.find(Principal(), id))
    assert (memory.type, memory.kind) == (kind, kind)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20)
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
RECORDS = st.fixed_dictionaries(
    {"type": st.text(min_size=1, max_size=20).filter(lambda t: t not in ("lesson", "checkpoint", "snippet")),
     "content": st.text(min_size=1, max_size=50).filter(str.strip)},
    optional={
        "agent": st.text(min_size=1, max_size=20), "project": st.text(min_size=1, max_size=20),
        "title": st.text(max_size=20), "tags": st.lists(st.text(min_size=1, max_size=5), max_size=3),
        "expires_at": st.integers(2**41, 2**50), "confidence": VALUES, "importance": VALUES, "source": VALUES,
        "user_id": VALUES, "event_time": VALUES, "speaker": VALUES, "session_id": VALUES, "entity_name": VALUES,
        "file_path": VALUES, "metadata": VALUES,
    },
)  # fmt: skip


@given(record=RECORDS, extra=st.dictionaries(st.text(min_size=1, max_size=8), VALUES, max_size=4))
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_every_record_survives_the_mapping(record: dict[str, Any], extra: dict[str, Any]) -> None:
    reserved = {"id", "created_at", "updated_at", "agent", "project", "title", "tags", "expires_at", "type", "content"}
    whole = {**{k: v for k, v in extra.items() if k not in reserved}, **record}
    check("amp/operations/store", {"record": whole})
    shown = to_record(new_memory(Principal(), to_draft(whole), 1))
    assert shown.pop("id")
    assert shown.pop("created_at") == 0
    assert shown == whole


# privacy, errors, schemas


def test_raw_queries_are_kept_nowhere(tmp_path: Path, clock: Any, caplog: pytest.LogCaptureFixture) -> None:
    secret = "xyzzyplugh frobnicate"
    with caplog.at_level(logging.DEBUG), open_subject(SqliteStore(tmp_path / "c.db", clock), clock) as (subject, run):
        amp = Caller(subject, run)
        amp.store()
        amp("search", query=secret)
        amp("search", query=secret, agent="alice")
        run(subject.engine.flush())
    assert "xyzzyplugh" not in caplog.text
    assert traces(tmp_path, "xyzzyplugh") == []


def test_every_fault_has_a_status_and_the_envelope_follows_its_schema() -> None:
    faults = [f for f in vars(errors).values() if isinstance(f, type) and issubclass(f, errors.Fault)]
    for kind in faults:
        assert kind.code in STATUS
        check("amp/error", envelope(kind("what went wrong", field="x")))
    assert envelope(NotFound("no record x")) == {
        "success": False, "error": {"code": "not_found", "message": "no record x"}}  # fmt: skip
    codes = ("validation_error", "not_found", "conflict", "payload_too_large", "not_implemented")
    assert [STATUS[code] for code in codes] == [400, 404, 409, 413, 501]


def test_every_operation_and_type_has_its_schemas() -> None:
    operations = {f"amp/operations/{name}{end}" for name in OPERATIONS for end in ("", ".response")}
    types = {f"amp/types/{name}" for name in ("record", "lesson", "checkpoint", "snippet")}
    assert set(AMP_SCHEMAS) == operations | types | {"amp/error"}


@pytest.mark.parametrize("name", AMP_SCHEMAS)
def test_each_schema_is_valid_says_where_it_lives_and_is_portable(name: str) -> None:
    import jsonschema_rs

    document = schema(name)
    jsonschema_rs.meta.validate(document)
    assert document["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert document["$id"] == "https://agentmemoryprotocol.org/schema/v0.1/" + name.removeprefix("amp/")
    registry = jsonschema_rs.Registry([(schema(other)["$id"], schema(other)) for other in AMP_SCHEMAS])
    jsonschema_rs.Draft202012Validator(document, registry=registry)
    for field, rules in document["properties"].items():
        assert rules["description"].endswith("."), field
    portable = portable_schema(name)
    jsonschema_rs.meta.validate(portable)
    assert portable["type"] == "object"


@pytest.mark.parametrize(
    ("kind", "field"),
    [
        (kind, field)
        for kind in ("record", "lesson", "checkpoint", "snippet")
        for field in ("id", "content", "created_at")
    ]
    + [("lesson", "title"), ("checkpoint", "agent"), ("checkpoint", "working_on")],
)
def test_a_record_without_a_field_its_type_needs_is_none_by_its_schema(kind: str, field: str) -> None:
    type = "note" if kind == "record" else kind
    record = {"id": "x", "content": "x", "created_at": 1, "title": "x", "agent": "a", "working_on": "x", "type": type}
    check(f"amp/types/{kind}", record)
    with pytest.raises(ValidationError, match=f"{field} is required"):
        check(f"amp/types/{kind}", {name: value for name, value in record.items() if name != field})


def test_the_documents_own_examples_are_accepted(amp: Caller) -> None:
    """§3.2 to §3.7, as they stand there."""
    amp("store", operation="store", record={
        "type": "lesson", "title": "Check array bounds before access",
        "content": "Always verify array indices are within bounds...", "tags": ["javascript", "arrays", "defensive"],
        "severity": "warning"})  # fmt: skip
    amp("search", operation="search", query="how to handle null pointer exceptions", type="lesson", tags=["java"],
        project="my-project", limit=10, min_score=0.7)  # fmt: skip
    with pytest.raises(NotFound):
        amp("get", operation="get", id="lesson_a1b2c3d4")
    assert amp("delete", operation="delete", id="lesson_a1b2c3d4")["deleted"] is False
    amp("list", operation="list", type="checkpoint", agent="radarr", limit=20, offset=0, order="desc")
    amp("status", operation="status")


@pytest.mark.parametrize("chosen", [{}, {"id": "mine"}])
def test_a_record_keeps_its_id_when_others_become_part_of_it(amp: Caller, chosen: dict[str, str]) -> None:
    kept = amp.store(agent="agent", project="atlas", title="kept", **chosen)
    amp.subject.clock.advance(1)
    named = amp.store(agent="agent", project="zeus", title="named", id="note")
    amp.subject.clock.advance(1)
    minted = amp.store(agent="agent", title="minted")
    ids = [amp.run(amp.subject.engine.find(WHO, ref)).id for ref in (kept, named, minted)]
    amp.run(amp.subject.merge(ids[0], *ids[1:], strategy="merge_content"))
    for ref in (kept, named, minted):
        record = amp.get(ref)
        assert (record["id"], record["project"], record["title"]) == (kept, "zeus", "minted")
    assert amp.titles(project="zeus") == ["minted"]
    assert amp.titles(project="atlas") == []
    (found,) = amp("search", query=LESSON["content"], min_score=0)["results"]
    assert found["id"] == kept
