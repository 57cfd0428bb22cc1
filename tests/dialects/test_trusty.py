"""trusty-memory's ten tools over both stores: what its guide says, and what we decided where it is silent."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from commonplace.dialects.memorywire import Memorywire, to_wire
from commonplace.dialects.trusty import records
from commonplace.dialects.trusty.operations import Trusty, uuid_of
from commonplace.dialects.trusty.tools import TOOLS, input_schema
from commonplace.embedders.encoder import NAME
from commonplace.engine.engine import Engine
from commonplace.engine.palaces import palace_recall
from commonplace.engine.palaces.palace_recall import effective_importance
from commonplace.engine.recall import relevance
from commonplace.engine.types import Draft, Hit
from commonplace.stores.sqlite import SqliteStore
from commonplace.testing.subject import DAY_MS, Subject, open_subject
from commonplace.wire.errors import Fault, Forbidden, NotFound, PayloadTooLarge, SecretLeakage, ValidationError
from commonplace.wire.filters import matches
from commonplace.wire.models import RecallRequest
from commonplace.wire.palace_names import valid
from commonplace.wire.record import Memory, Principal
from commonplace.wire.validate import check, portable_schema, schema, schema_names

GATEWAY = "The API gateway validates JWT tokens using RS256."
NOBODYS = "a3f1c2d4-1234-5678-9abc-def012345678"
#: As the guide names them.
NAMED_ROOMS = (
    "Frontend", "Backend", "Testing", "Planning", "Documentation", "Research", "Configuration", "Meetings", "General",
)  # fmt: skip
PALACE_TOOLS = [name for name, (_, properties, _) in TOOLS.items() if "palace" in properties]
#: Each tool with arguments that are right but for the palace.
RIGHT: dict[str, dict[str, Any]] = {
    "memory_remember": {"text": GATEWAY}, "memory_recall": {"query": "tokens"}, "memory_recall_deep": {"query": "x"},
    "kg_assert": {"subject": "a", "predicate": "b", "object": "c"}, "kg_query": {"subject": "a"}, "memory_list": {},
    "memory_forget": {"drawer_id": NOBODYS}, "palace_info": {},
}  # fmt: skip


class Caller:
    """The tools for one caller, every answer checked against its schema."""

    def __init__(
        self,
        subject: Subject,
        run: Callable[[Any], Any],
        palace: str | None = "my-project",
        who: Principal | None = None,
    ) -> None:
        self.subject, self.run, self.palace, self.who = subject, run, palace, who or Principal()

    def __call__(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        trusty = Trusty(self.subject.engine, self.who, self.palace)
        answer: dict[str, Any] = self.run(trusty.call(tool, arguments))
        check(f"trusty/tools/{tool}.response", answer)
        return answer

    def remember(self, text: str = GATEWAY, **more: Any) -> str:
        return str(self("memory_remember", text=text, **more)["drawer_id"])

    def important(self, text: str, importance: float, palace: str = "my-project", **more: Any) -> str:
        return str(self.run(self.subject.remember(text, palace, importance=importance, **more)))

    def recall(self, query: str, *, deep: bool = False, **more: Any) -> list[dict[str, Any]]:
        results: list[dict[str, Any]] = self(f"memory_recall{'_deep' * deep}", query=query, **more)["results"]
        return results

    def listed(self, **more: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self("memory_list", **more)["drawers"]
        return found

    def refused(self, tool: str, /, **arguments: Any) -> Fault:
        with pytest.raises(Fault) as refusal:
            self(tool, **arguments)
        return refusal.value

    def without_default(self) -> Caller:
        return Caller(self.subject, self.run, None, self.who)

    def as_(self, *agents: str, role: str = "writer", tenant: str = "local") -> Caller:
        return Caller(self.subject, self.run, self.palace, Principal("someone", tenant, role, agents))  # type: ignore[arg-type]


@pytest.fixture
def trusty(over: tuple[Subject, Callable[[Any], Any]]) -> Caller:
    return Caller(*over)


# the published tools


def test_palace_is_required_only_without_a_default() -> None:
    for name, (_, properties, required) in TOOLS.items():
        without, given_one = input_schema(name, palace=True), input_schema(name, palace=False)
        assert list(without["properties"]) == list(given_one["properties"]) == list(properties)
        if required is None:
            assert "required" not in without
            continue
        assert given_one["required"] == required
        assert without["required"] == (["palace", *required] if "palace" in properties else required)


@pytest.mark.parametrize("name", TOOLS)
def test_our_schemas_say_the_same_fields_and_more_about_them(name: str) -> None:
    ours, theirs = schema(f"trusty/tools/{name}"), input_schema(name, palace=False)
    assert list(ours["properties"]) == list(theirs["properties"])
    assert ours.get("required", []) == theirs.get("required", [])
    for field, rules in theirs["properties"].items():
        assert ours["properties"][field]["type"] == rules["type"]
        assert ours["properties"][field].get("default") == rules.get("default")


@pytest.mark.parametrize("name", [name for name in schema_names() if name.startswith("trusty/")])
def test_each_schema_is_whole(name: str) -> None:
    document = schema(name)
    jsonschema_rs.meta.validate(document)
    assert document["$id"] == f"urn:commonplace:schemas:{name}"
    assert (document["type"], document["additionalProperties"]) == ("object", False)
    assert all(rules["description"].endswith(".") for rules in document["properties"].values())
    assert "$ref" not in str(portable_schema(name))


# remembering


def test_a_memory_is_stored_and_says_where(trusty: Caller) -> None:
    answer = trusty("memory_remember", palace="my-project", text=GATEWAY, room="Backend", tags=["auth", "jwt"])
    assert list(answer) == ["drawer_id", "palace", "status"]
    assert (answer["palace"], answer["status"]) == ("my-project", "stored")
    memory = trusty.run(trusty.subject.get(answer["drawer_id"], "my-project"))
    assert (memory.content, memory.tags, memory.metadata) == (GATEWAY, ["auth", "jwt"], {"room": "Backend"})
    assert (memory.type, memory.kind, memory.provenance["dialect"]) == ("semantic", "drawer", "trusty")
    assert memory.importance is None


def test_what_waits_for_approval_says_pending_and_cannot_be_seen(
    trusty: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    plainly = Engine.remember

    async def staged(engine: Engine, who: Principal, draft: Draft, **more: Any) -> Any:
        request = {"agent_id": draft.agent_id, "type": draft.type, "content": draft.content}
        return await plainly(engine, who, draft, approval=request, **more)

    monkeypatch.setattr(Engine, "remember", staged)
    answer = trusty("memory_remember", text=GATEWAY)
    assert answer["status"] == "pending"
    assert trusty.listed() == trusty.recall("API gateway") == []
    assert trusty("memory_forget", drawer_id=answer["drawer_id"])["status"] == "deleted"
    (review,) = trusty.run(trusty.subject.engine.reviews.list(Principal()))
    assert review["memory_id"] == answer["drawer_id"]


@pytest.mark.parametrize("room", NAMED_ROOMS)
def test_known_rooms_are_stored_by_their_name(trusty: Caller, room: str) -> None:
    id = trusty.remember(room=room)
    assert trusty.run(trusty.subject.get(id, "my-project")).metadata == {"room": room}
    assert [d["drawer_id"] for d in trusty.listed(room=room)] == [id]


def test_any_other_room_is_custom_and_is_found_by_both_names(trusty: Caller) -> None:
    id = trusty.remember(room="Kitchen")
    assert trusty.run(trusty.subject.get(id, "my-project")).metadata == {"room": "Custom(Kitchen)"}
    again = trusty.remember("Another.", room="Custom(Kitchen)")
    assert trusty.run(trusty.subject.get(again, "my-project")).metadata == {"room": "Custom(Kitchen)"}
    for name in ("Kitchen", "Custom(Kitchen)"):
        assert {d["drawer_id"] for d in trusty.listed(room=name)} == {id, again}
    assert trusty.listed(room="kitchen") == []


@pytest.mark.parametrize("given_room", [{}, {"room": None}, {"room": ""}, {"room": "General"}])
def test_without_a_room_it_is_general(trusty: Caller, given_room: dict[str, Any]) -> None:
    id = trusty.remember(**given_room)
    assert [d["drawer_id"] for d in trusty.listed(room="General")] == [id]
    assert trusty.listed(room="Backend") == []


@given(st.text(min_size=1))
@settings(max_examples=60)
def test_a_memory_lies_in_the_room_it_was_put_in(room: str) -> None:
    draft = records.to_draft("p", "x", room, [])
    memory = Memory("1", "local", "p", "semantic", "x", metadata=draft.metadata)
    assert matches(memory, (records.in_room(room),))
    assert matches(memory, (records.in_room(records.room_name(room)),))
    assert not matches(memory, (records.in_room(f"{records.room_name(room)}!"),))


def test_a_text_has_a_documented_limit(trusty: Caller) -> None:
    assert isinstance(trusty.refused("memory_remember", text="x" * 262_145), PayloadTooLarge)
    assert trusty.refused("memory_remember", text="  ").message.startswith("memory_remember: content must not be blank")
    assert trusty.listed() == []


# recall in layers


def test_a_recall_says_palace_query_and_results(trusty: Caller) -> None:
    trusty.remember(tags=["auth"])
    answer = trusty("memory_recall", query="How does token validation work?", top_k=5)
    assert list(answer) == ["palace", "query", "results"]
    assert (answer["palace"], answer["query"]) == ("my-project", "How does token validation work?")
    (result,) = answer["results"]
    assert list(result) == ["drawer_id", "content", "score", "layer", "tags", "importance"]
    assert (result["content"], result["tags"], result["importance"]) == (GATEWAY, ["auth"], 0.5)


def test_layer_one_is_the_fifteen_most_important(trusty: Caller) -> None:
    ids = [trusty.important(f"note {i}", 0.3 + i / 100) for i in range(20)]
    results = trusty.recall("   ", top_k=100)
    assert [r["layer"] for r in results] == [1] * 15
    assert [r["drawer_id"] for r in results] == ids[:4:-1]
    assert [r["score"] for r in results] == [r["importance"] for r in results] == [(49 - i) / 100 for i in range(15)]
    trusty.subject.clock.advance(90 * DAY_MS)
    faded = trusty.recall("   ", top_k=100)
    assert [r["score"] for r in faded] == [r["importance"] for r in faded]
    assert faded[0]["score"] == 0.245, "the importance of now, not the one that was given"


@pytest.mark.parametrize(("deep", "layer"), [(False, 2), (True, 3)])
def test_what_the_query_finds_is_layer_two_and_of_a_deep_recall_three(trusty: Caller, deep: bool, layer: int) -> None:
    for i in range(20):
        trusty.important(f"a note about lunch, number {i}", 0.9)
    wanted = trusty.important("The gateway checks tokens", 0.2, tags=["auth"])
    results = trusty.recall("gateway tokens", deep=deep, top_k=6)
    found = results[0]
    assert (found["drawer_id"], found["layer"], found["tags"], found["importance"]) == (wanted, layer, ["auth"], 0.2)
    scores = [r["score"] for r in results if r["layer"] == layer]
    assert scores == sorted(scores, reverse=True)
    assert 0 < found["score"] <= 1


def test_the_score_of_a_query_hit_is_its_similarity(trusty: Caller) -> None:
    for i in range(15):
        trusty.important(f"filler {i}", 1.0)
    trusty.important("the very same words", 0.1)
    hit = next(r for r in trusty.recall("the very same words", top_k=40) if r["layer"] == 2)
    assert hit["content"] == "the very same words"
    assert hit["score"] == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize(("deep", "layer"), [(False, 2), (True, 3)])
def test_what_was_found_stands_once_with_its_similarity_however_important(
    trusty: Caller, deep: bool, layer: int
) -> None:
    id = trusty.important("The gateway checks tokens", 0.9)
    trusty.important("lunch", 0.1)
    results = trusty.recall("The gateway checks tokens", deep=deep)
    assert [(r["drawer_id"], r["layer"]) for r in results if r["drawer_id"] == id] == [(id, layer)]
    assert results[0]["score"] == pytest.approx(1.0, abs=1e-3)
    assert len({r["drawer_id"] for r in results}) == len(results) == 2


def test_what_matters_most_takes_no_place_from_what_was_found(trusty: Caller) -> None:
    for i in range(20):
        trusty.important(f"lunch menu {i}", 0.9)
    for i in range(20):
        trusty.important(f"gateway tokens {i}", 0.1)
    for top_k in (1, 2, 5, 10):
        results = trusty.recall("gateway tokens", top_k=top_k)
        assert len(results) == top_k
        assert all(r["content"].startswith("gateway") for r in results)


def test_places_that_the_query_leaves_empty_are_filled_from_layer_one(trusty: Caller) -> None:
    for i in range(12):
        trusty.important(f"note {i}", 0.5)
    # A question of white space finds nothing at all.
    results = trusty.recall("   ", top_k=10)
    assert [r["layer"] for r in results] == [1] * 10


@pytest.mark.parametrize("top_k", [0, 1, 3, 10])
def test_top_k_bounds_the_whole_answer(trusty: Caller, top_k: int) -> None:
    trusty.run(trusty.subject.engine.palaces.set_identity(Principal(), "my-project", "I am the project."))
    for i in range(20):
        trusty.remember(f"note {i}")
    assert len(trusty.recall("note", top_k=top_k)) == top_k
    assert len(trusty.recall("note", deep=True, top_k=top_k)) == top_k


def test_ten_are_given_unless_said(trusty: Caller) -> None:
    for i in range(14):
        trusty.remember(f"note {i}")
    assert len(trusty.recall("note")) == len(trusty.recall("note", top_k=None)) == 10
    assert len(trusty.recall("note", top_k=10**19)) == 14


def test_the_identity_is_layer_zero_and_only_there_when_set(trusty: Caller) -> None:
    trusty.remember()
    assert [r["layer"] for r in trusty.recall("tokens")] == [2]
    trusty.run(trusty.subject.engine.palaces.set_identity(Principal(), "my-project", "I am the project.\n"))
    for deep in (False, True):
        first, *rest = trusty.recall("tokens", deep=deep)
        assert first == {
            "drawer_id": "00000000-0000-0000-0000-000000000000", "content": "I am the project.", "score": 1.0,
            "layer": 0, "tags": [], "importance": 1.0,
        }  # fmt: skip
        assert [r["layer"] for r in rest] == [3 if deep else 2]
    trusty.run(trusty.subject.engine.palaces.set_identity(Principal(), "my-project", None))
    assert [r["layer"] for r in trusty.recall("tokens")] == [2]


@pytest.mark.parametrize("calibrated", [False, True])
def test_nothing_is_cut_off_for_being_irrelevant(
    trusty: Caller, calibrated: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if calibrated:  # as for the embedder that ships: only then is there a cut-off at all
        fit = relevance.fitted(NAME)
        monkeypatch.setattr(relevance, "fitted", lambda name: fit)
    every = {trusty.remember(f"xylophone {i}") for i in range(30)}
    wire = Memorywire(trusty.subject.engine, Principal())
    elsewhere = trusty.run(wire.recall(RecallRequest(agent_id="my-project", query="quantum chromodynamics")))
    assert (elsewhere.results == []) is calibrated
    for deep, layer in ((False, 2), (True, 3)):
        results = trusty.recall("quantum chromodynamics", deep=deep, top_k=30)
        assert {r["drawer_id"] for r in results} == every
        assert [r["layer"] for r in results] == [layer] * 30


def test_recall_reads_exactly_its_palace(trusty: Caller) -> None:
    trusty.important("a secret of another agent", 1.0, palace="other")
    trusty.important("something shared", 1.0, palace="shared")
    trusty.remember()
    assert [r["content"] for r in trusty.recall("secret shared", top_k=50)] == [GATEWAY]
    assert [r["content"] for r in trusty.recall("secret shared", deep=True, top_k=50)] == [GATEWAY]
    assert [d["content"] for d in trusty.listed()] == [GATEWAY]
    assert trusty("palace_info")["drawer_count"] == 1


@given(
    st.integers(1, 30), st.integers(0, 15), st.lists(st.integers(0, 40), unique=True, max_size=40), st.booleans(),
)  # fmt: skip
@settings(max_examples=200)
def test_layers_are_composed_as_promised(k: int, essential: int, found: list[int], named: bool) -> None:
    def memory(i: int) -> Memory:
        return Memory(str(i), "local", "p", "semantic", f"{i}", importance=1 - i / 100)

    hits = [Hit(memory(i), 1.0, "store", explain={"dense": 1 - place / 100}) for place, i in enumerate(found)]
    first = [memory(i) for i in range(essential)]
    answer = palace_recall.compose("who" if named else None, first, hits, k, 0, layer=2)
    ids = [place.memory.id for place in answer.hits]
    taken = len(ids) + (answer.identity is not None)
    assert len(set(ids)) == len(ids)
    there = {*map(str, found), *map(str, range(essential))}
    assert taken == min(k, len(there) + (named and k >= 2))
    room = k - (answer.identity is not None)
    assert ids[: len(found)] == [str(i) for i in found[:room]]
    assert all(place.layer == (2 if int(place.memory.id) in found else 1) for place in answer.hits)
    filling = [place.score for place in answer.hits if place.layer == 1]
    assert filling == sorted(filling, reverse=True)
    assert set(answer.found) == {place.memory.id for place in answer.hits if place.layer == 2 and place.score >= 0.3}


# importance


def test_a_new_memory_has_importance_a_half(trusty: Caller) -> None:
    trusty.remember()
    assert trusty.listed()[0]["importance"] == 0.5


@pytest.mark.parametrize(
    ("given_importance", "days", "recalls", "expected"),
    [
        (None, 0, 0, 0.5),
        (None, 90, 0, 0.25),
        (0.8, 180, 0, 0.2),
        (0.8, 90, 2, 0.5),
        (0.5, 0, 6, 0.8),
        (0.5, 0, 60, 0.8),
        (1.0, 0, 6, 1.0),
        (0.0, 0, 0, 0.05),
        (0.5, 3650, 0, 0.05),
        (0.5, -5, 0, 0.5),
    ],
)
def test_importance_halves_in_ninety_days_and_recalls_hold_it_up(
    given_importance: float | None, days: int, recalls: int, expected: float
) -> None:
    memory = Memory("1", "local", "p", "semantic", "x", importance=given_importance, recalls=recalls, created_at=0)
    assert effective_importance(memory, days * DAY_MS) == pytest.approx(expected, abs=1e-9)


def test_a_recall_counts_for_what_the_query_found(trusty: Caller) -> None:
    trusty.remember()
    trusty.recall(GATEWAY)
    assert trusty.listed()[0]["importance"] == 0.55
    trusty.recall(GATEWAY, deep=True)
    assert trusty.listed()[0]["importance"] == 0.6
    trusty.recall("quantum chromodynamics")  # which is shown a drawer that answers nothing
    assert trusty.listed()[0]["importance"] == 0.6


def test_being_important_alone_is_no_recall(trusty: Caller) -> None:
    ids = [trusty.important(f"lunch {i}", 0.6) for i in range(40)]
    shown = {r["drawer_id"] for r in trusty.recall("   ", top_k=4)}
    assert shown < set(ids)
    assert {d["importance"] for d in trusty.listed()} == {0.6}


def test_a_list_is_sorted_by_importance_as_it_is_now(trusty: Caller) -> None:
    old = trusty.important("old but important", 0.9)
    trusty.subject.clock.advance(180 * DAY_MS)
    new = trusty.remember("new")
    listed = trusty.listed()
    assert [d["drawer_id"] for d in listed] == [new, old]
    assert [d["importance"] for d in listed] == [0.5, 0.225]


def test_a_list_is_capped_at_its_limit(trusty: Caller) -> None:
    for i in range(55):
        trusty.remember(f"note {i}")
    assert len(trusty.listed()) == 50
    assert len(trusty.listed(limit=7)) == 7
    assert trusty.listed(limit=0) == []
    assert len(trusty.listed(limit=1000)) == len(trusty.listed(limit=2**64 - 1)) == 55


def test_a_list_shows_these_fields(trusty: Caller) -> None:
    id = trusty.remember(room="Backend", tags=["auth", "jwt"])
    answer = trusty("memory_list", room="Backend", tag="auth", limit=20)
    assert list(answer) == ["palace", "drawers"]
    (drawer,) = answer["drawers"]
    assert list(drawer) == ["drawer_id", "content", "importance", "tags", "created_at"]
    assert (drawer["drawer_id"], drawer["content"], drawer["tags"]) == (id, GATEWAY, ["auth", "jwt"])
    assert drawer["created_at"] == records.timestamp(trusty.subject.clock.now)


def test_room_and_tag_narrow_a_list_together(trusty: Caller) -> None:
    both = trusty.remember("1", room="Backend", tags=["auth"])
    trusty.remember("2", room="Frontend", tags=["auth"])
    trusty.remember("3", room="Backend", tags=["other"])
    assert [d["drawer_id"] for d in trusty.listed(room="Backend", tag="auth")] == [both]
    assert len(trusty.listed(tag="auth")) == 2
    assert trusty.listed(tag="aut") == []


@given(st.lists(st.tuples(st.none() | st.floats(0, 1), st.integers(0, 400), st.integers(0, 8)), max_size=25),
       st.integers(0, 12), st.booleans())  # fmt: skip
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_the_embedded_store_orders_as_the_formula_does(
    tmp_path_factory: pytest.TempPathFactory, given_rows: list[tuple[float | None, int, int]], limit: int, tagged: bool
) -> None:
    from commonplace.testing import FakeClock

    clock = FakeClock()
    store = SqliteStore(tmp_path_factory.mktemp("worth") / "commonplace.db", clock)
    with open_subject(store, clock) as (subject, run):
        for i, (importance, days, recalls) in enumerate(given_rows):
            clock.advance(days * DAY_MS // 10)
            tags = ["odd"] if i % 2 else []
            id = run(subject.remember(f"m{i}", importance=importance, tags=tags))
            run(
                store.transact(
                    "local", lambda tx, id=id, n=recalls: [tx.count_recalls([id], clock.now) for _ in range(n)]
                )
            )
        caller = Caller(subject, run, "agent")
        shown = caller.listed(limit=limit, **({"tag": "odd"} if tagged else {}))
        everything = [m for m in run(subject.list()) if not tagged or "odd" in m.tags]
        expected = sorted((round(effective_importance(m, clock.now), 4) for m in everything), reverse=True)[:limit]
        assert [d["importance"] for d in shown] == expected


def test_the_order_follows_every_change(trusty: Caller) -> None:
    """What is remembered between two calls must not outlive a change made meanwhile."""
    first, second, third = (trusty.important(f"m{i}", 0.9 - i / 10) for i in range(3))

    def order() -> list[str]:
        return [d["drawer_id"] for d in trusty.listed()]

    assert order() == [first, second, third]
    trusty("memory_forget", drawer_id=second)
    assert order() == [first, third]
    trusty.run(
        trusty.subject.engine.update_with(Principal(), "my-project", third, lambda m: replace(m, importance=1.0))
    )
    assert order() == [third, first]
    trusty.run(trusty.subject.forget(first, agent="my-project", hard_delete=True))
    fourth = trusty.important("m4", 0.95)
    assert order() == [third, fourth]
    trusty.run(trusty.subject.engine.update_with(
        Principal(), "my-project", third, lambda m: replace(m, expires_at=trusty.subject.clock.now + 10)))  # fmt: skip
    trusty.subject.clock.advance(11)
    assert order() == [fourth]


# forgetting


def test_a_forgotten_drawer_is_gone_everywhere_at_once(trusty: Caller) -> None:
    id = trusty.remember()
    answer = trusty("memory_forget", drawer_id=id)
    assert answer == {"status": "deleted", "drawer_id": id, "palace": "my-project"}
    assert list(answer) == ["status", "drawer_id", "palace"]
    assert trusty.listed() == trusty.recall("tokens") == []
    assert trusty("palace_info")["drawer_count"] == 0
    with pytest.raises(NotFound):
        trusty.run(trusty.subject.get(id, "my-project"))


def test_a_delete_is_soft(trusty: Caller) -> None:
    id = trusty.remember()
    trusty("memory_forget", drawer_id=id.upper())
    (kept,) = trusty.run(trusty.subject.store.get("local", [id]))
    assert (kept.status, kept.content) == ("deleted", GATEWAY)


def test_forgetting_an_unknown_uuid_answers_deleted(trusty: Caller) -> None:
    assert trusty("memory_forget", drawer_id=NOBODYS)["status"] == "deleted"
    other = trusty.important("of another palace", 0.5, palace="other")
    assert trusty("memory_forget", drawer_id=other)["status"] == "deleted"
    assert trusty.run(trusty.subject.get(other, "other")).content == "of another palace"


@pytest.mark.parametrize("drawer_id", ["", "a3f1c2d4", "a3f1c2d4-...", f"{NOBODYS}0", "x" * 36, "\u0661" * 32])
def test_what_is_no_uuid_is_refused(trusty: Caller, drawer_id: str) -> None:
    assert trusty.refused("memory_forget", drawer_id=drawer_id).message.startswith(
        "memory_forget: drawer_id must be a UUID"
    )


@pytest.mark.parametrize("spelled", [NOBODYS, NOBODYS.upper(), NOBODYS.replace("-", ""), f"{{{NOBODYS}}}"])
def test_a_uuid_may_be_spelled_in_every_usual_way(spelled: str) -> None:
    assert uuid_of(spelled) == NOBODYS


# palaces


def test_a_palace_is_made_listed_and_described(trusty: Caller) -> None:
    caller = trusty.without_default()
    answer = caller("palace_create", name="client-acme", description="Memories for the Acme client engagement")
    assert answer == {"palace_id": "client-acme", "status": "created"}
    assert list(answer) == ["palace_id", "status"]
    assert caller("palace_list") == {"palaces": ["client-acme"]}
    found = caller.run(caller.subject.engine.palaces.get(Principal(), "client-acme"))
    assert found.description == "Memories for the Acme client engagement"
    info = caller("palace_info", palace="client-acme")
    assert list(info) == ["id", "name", "drawer_count", "data_dir"]
    assert (info["id"], info["name"], info["drawer_count"]) == ("client-acme", "client-acme", 0)


def test_making_a_palace_again_changes_nothing(trusty: Caller) -> None:
    trusty("palace_create", name="acme", description="first")
    trusty.run(trusty.subject.engine.palaces.set_identity(Principal(), "acme", "who"))
    trusty.remember(palace="acme")
    before = trusty.run(trusty.subject.engine.palaces.get(Principal(), "acme"))
    trusty.subject.clock.advance(1000)
    assert trusty("palace_create", name="acme", description="second") == {"palace_id": "acme", "status": "created"}
    assert trusty.run(trusty.subject.engine.palaces.get(Principal(), "acme")) == before
    assert len(trusty.listed(palace="acme")) == 1


def test_a_description_may_come_later_than_the_palace(trusty: Caller) -> None:
    trusty.remember()
    trusty("palace_create", name="my-project", description="what we know")
    assert trusty.run(trusty.subject.engine.palaces.get(Principal(), "my-project")).description == "what we know"


@pytest.mark.parametrize("name", ["", " ", "..", "a..b", "../x", "a/b", "/", "a\0b", "x" * 129])
def test_names_that_reach_elsewhere_are_refused(trusty: Caller, name: str) -> None:
    assert "a palace's name has" in trusty.refused("palace_create", name=name).message
    assert trusty("palace_list") == {"palaces": ["my-project"]}
    if name:
        assert isinstance(trusty.refused("memory_remember", palace=name, text="x"), ValidationError)


def test_a_name_may_be_as_long_as_promised(trusty: Caller) -> None:
    name = "é" * 128
    trusty("palace_create", name=name)
    assert name in trusty("palace_list")["palaces"]


@given(st.text(max_size=140))
def test_a_valid_name_holds_nothing_that_reaches_elsewhere(name: str) -> None:
    expected = 0 < len(name) <= 128 and bool(name.strip()) and not re.search(r"\.\.|/|\0|[\ud800-\udfff]", name)
    assert valid(name) is expected


def test_every_agent_with_a_memory_and_a_valid_name_is_a_palace(trusty: Caller) -> None:
    trusty.important("x", 0.5, palace="assistant")
    gone = trusty.important("x", 0.5, palace="emptied")
    trusty.run(trusty.subject.forget(gone, agent="emptied"))
    trusty.important("x", 0.5, palace="team/one")
    assert trusty("palace_list")["palaces"] == ["assistant", "emptied", "my-project"]
    assert trusty("palace_info", palace="assistant")["drawer_count"] == 1
    assert trusty("palace_info", palace="emptied")["drawer_count"] == 0


def test_an_unknown_palace_is_an_error_for_every_tool(trusty: Caller) -> None:
    for tool in PALACE_TOOLS:
        fault = trusty.refused(tool, palace="nowhere", **RIGHT[tool])
        assert isinstance(fault, NotFound)
        assert fault.message.startswith(f"{tool}: there is no palace 'nowhere'")
    assert trusty("palace_list") == {"palaces": ["my-project"]}


def test_the_default_palace_is_made_when_it_is_not_there(trusty: Caller) -> None:
    assert trusty("palace_info")["drawer_count"] == 0
    assert trusty("palace_list") == {"palaces": ["my-project"]}
    assert trusty.without_default()("palace_list") == {"palaces": []}, "reading makes nothing"
    trusty("kg_assert", **RIGHT["kg_assert"])
    assert trusty.without_default()("palace_list") == {"palaces": ["my-project"]}


READING = ["memory_recall", "memory_recall_deep", "kg_query", "memory_list", "palace_info"]


def test_a_default_palace_that_is_not_there_reads_as_an_empty_one(trusty: Caller) -> None:
    reader = trusty.as_("my-project", role="reader")
    told = [reader(tool, **RIGHT[tool]) for tool in READING]
    assert [answer.get("results", answer.get("triples", answer.get("drawers", []))) for answer in told] == [[]] * 5
    assert reader("palace_list") == {"palaces": ["my-project"]}
    for tool in ("memory_remember", "kg_assert", "memory_forget"):
        assert isinstance(reader.refused(tool, **RIGHT[tool]), Forbidden)
    assert trusty.without_default()("palace_list") == {"palaces": []}


def test_whoever_may_not_use_the_default_palace_still_uses_its_own(trusty: Caller) -> None:
    limited = trusty.as_("other")
    assert limited("palace_list") == {"palaces": []}
    limited("palace_create", name="other")
    assert limited("palace_list") == {"palaces": ["other"]}
    for tool in READING:
        assert isinstance(limited.refused(tool, **RIGHT[tool]), Forbidden)
    assert trusty.without_default()("palace_list") == {"palaces": ["other"]}


def test_a_named_palace_wins_over_the_default(trusty: Caller) -> None:
    trusty("palace_create", name="other")
    assert trusty("memory_remember", palace="other", text="x")["palace"] == "other"
    assert trusty.listed() == []


def test_identity_and_description_have_a_limit(trusty: Caller) -> None:
    longest = "x" * 16_384
    assert isinstance(trusty.refused("palace_create", name="p", description=longest + "x"), PayloadTooLarge)
    with pytest.raises(PayloadTooLarge):
        trusty.run(trusty.subject.engine.palaces.set_identity(Principal(), "p", longest + "x"))
    trusty("palace_create", name="p", description=longest)
    kept = trusty.run(trusty.subject.engine.palaces.set_identity(Principal(), "p", longest))
    assert (kept.description, kept.identity) == (longest, longest)


def test_the_data_directory_is_told_to_whoever_looks_after_it(trusty: Caller, tmp_path: Path) -> None:
    trusty.subject.engine._core.settings.folder = tmp_path
    assert trusty("palace_info")["data_dir"] == str(tmp_path)
    assert trusty.as_("my-project", role="admin")("palace_info")["data_dir"] is None


def test_a_palace_is_made_and_named_under_audit(trusty: Caller) -> None:
    trusty("palace_create", name="acme")
    trusty.run(trusty.subject.engine.palaces.set_identity(Principal(), "acme", "who"))
    entries = trusty.run(trusty.subject.engine.ledger.entries(Principal(), agent_id="acme"))
    assert [entry.operation for entry in entries] == ["create_palace", "identify_palace"]


# the graph


def test_a_fact_is_asserted_and_read(trusty: Caller) -> None:
    asserted = trusty(
        "kg_assert", subject="auth-service", predicate="deployed_version", object="2.4.1", confidence=0.95,
        provenance="deploy-log-2026-05-10",
    )  # fmt: skip
    assert asserted == {"status": "asserted"}
    answer = trusty("kg_query", subject="auth-service")
    assert list(answer) == ["subject", "triples"]
    (triple,) = answer["triples"]
    assert list(triple) == ["subject", "predicate", "object", "valid_from", "valid_to", "confidence", "provenance"]
    assert triple == {
        "subject": "auth-service", "predicate": "deployed_version", "object": "2.4.1",
        "valid_from": records.timestamp(trusty.subject.clock.now), "valid_to": None, "confidence": 0.95,
        "provenance": "deploy-log-2026-05-10",
    }  # fmt: skip


def test_a_new_fact_closes_the_one_before(trusty: Caller) -> None:
    began = records.timestamp(trusty.subject.clock.now)
    trusty("kg_assert", subject="billing", predicate="version", object="7")
    for version in ("1", "2"):
        trusty("kg_assert", subject="auth", predicate="version", object=version)
        trusty("kg_assert", subject="auth", predicate="owner", object="Alice")
        trusty.subject.clock.advance(1000)
    triples = trusty("kg_query", subject="auth")["triples"]
    assert {(t["predicate"], t["object"], t["valid_to"]) for t in triples} == {
        ("owner", "Alice", None), ("version", "2", None),
    }  # fmt: skip
    changed = next(t["valid_from"] for t in triples if t["predicate"] == "version")
    assert changed == records.timestamp(trusty.subject.clock.now - 1000)
    # What held before ended when the new one began, and is kept.
    before = {t["predicate"]: t for t in trusty("kg_query", subject="auth", as_of=began)["triples"]}
    assert (before["version"]["object"], before["version"]["valid_from"]) == ("1", began)
    assert before["version"]["valid_to"] == changed


def test_a_fact_has_confidence_one_and_no_provenance_unless_said(trusty: Caller) -> None:
    trusty("kg_assert", subject="a", predicate="b", object="c", confidence=None, provenance=None)
    (triple,) = trusty("kg_query", subject="a")["triples"]
    assert (triple["confidence"], triple["provenance"]) == (1.0, None)
    for given_confidence, kept in ((7, 1.0), (-1, 0.0)):
        trusty("kg_assert", subject="a", predicate="b", object="c", confidence=given_confidence)
        assert trusty("kg_query", subject="a")["triples"][0]["confidence"] == kept


def test_nothing_is_known_of_an_unknown_subject(trusty: Caller) -> None:
    assert trusty("kg_query", subject="nobody") == {"subject": "nobody", "triples": []}


def test_facts_are_read_as_they_were_at_an_instant(trusty: Caller) -> None:
    trusty("kg_assert", subject="auth", predicate="version", object="1")
    between = records.timestamp(trusty.subject.clock())
    trusty.subject.clock.advance(DAY_MS)
    trusty("kg_assert", subject="auth", predicate="version", object="2")

    def objects(**more: Any) -> list[str]:
        return [triple["object"] for triple in trusty("kg_query", subject="auth", **more)["triples"]]

    assert objects() == objects(as_of=None) == ["2"]
    assert objects(as_of=between) == ["1"]
    assert objects(as_of="2001-01-01") == []
    assert "as_of must be an ISO-8601 time" in trusty.refused("kg_query", subject="auth", as_of="yesterday").message
    assert "as_of" not in input_schema("kg_query", palace=True)["properties"], "the list is trusty-memory's own"


def test_facts_stay_in_their_palace(trusty: Caller) -> None:
    trusty("palace_create", name="other")
    trusty("kg_assert", palace="other", subject="a", predicate="b", object="c")
    assert trusty("kg_query", subject="a")["triples"] == []


# times


@given(st.integers(0, 253_402_300_799_999))
def test_times_are_rfc_3339_in_utc(ms: int) -> None:
    from datetime import UTC, datetime, timedelta

    text = records.timestamp(ms)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z", text)
    assert datetime.fromisoformat(text) == datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)


def test_a_whole_second_is_written_without_a_fraction() -> None:
    assert records.timestamp(1_778_423_520_000) == "2026-05-10T14:32:00Z"


# refusals


@pytest.mark.parametrize("tool", PALACE_TOOLS)
def test_a_missing_palace_is_said_in_the_words_of_the_guide(trusty: Caller, tool: str) -> None:
    for arguments in (RIGHT[tool], {**RIGHT[tool], "palace": None}):
        assert (
            trusty.without_default().refused(tool, **arguments).message
            == f"{tool}: missing 'palace' (no --palace default configured)"
        )


@pytest.mark.parametrize(("tool", "field"), [(tool, field) for tool, (_, _, needed) in TOOLS.items()
                                             for field in needed or ()])  # fmt: skip
def test_every_missing_argument_is_named(trusty: Caller, tool: str, field: str) -> None:
    right = {**RIGHT.get(tool, {"name": "p"})}
    for arguments in ({k: v for k, v in right.items() if k != field}, {**right, field: None}):
        assert trusty.refused(tool, **arguments).message == f"{tool}: missing '{field}'"


@pytest.mark.parametrize(
    ("tool", "wrong", "what"),
    [
        ("memory_remember", {"text": 5}, "'text' must be text"),
        ("memory_remember", {"text": "\ud800"}, "text holds half of a surrogate pair"),
        ("memory_remember", {"text": "x", "tags": "auth"}, "'tags' must be a list of strings"),
        ("memory_remember", {"text": "x", "tags": ["a", 1]}, "'tags' must be text"),
        ("memory_remember", {"text": "x", "room": []}, "'room' must be text"),
        ("memory_remember", {"text": "x", "palace": 1}, "'palace' must be text"),
        ("memory_recall", {"query": "x", "top_k": -1}, "'top_k' must be a whole number"),
        ("memory_recall", {"query": "x", "top_k": "5"}, "'top_k' must be a whole number"),
        ("memory_recall", {"query": "x", "top_k": True}, "'top_k' must be a whole number"),
        ("memory_recall_deep", {"query": "x", "top_k": 1.5}, "'top_k' must be a whole number"),
        ("memory_list", {"limit": float("inf")}, "'limit' must be a whole number"),
        ("kg_assert", {"subject": "a", "predicate": "b", "object": "c", "confidence": "high"}, "'confidence' must be"),
        ("kg_assert", {"subject": "a", "predicate": "b", "object": "c", "confidence": 10**400}, "'confidence' must be"),
        ("kg_assert", {"subject": " ", "predicate": "b", "object": "c"}, "subject must not be blank"),
    ],
)
def test_what_is_not_of_its_kind_is_refused_by_name(
    trusty: Caller, tool: str, wrong: dict[str, Any], what: str
) -> None:
    assert trusty.refused(tool, **wrong).message.startswith(f"{tool}: {what}")
    assert trusty.listed() == []


def test_an_unknown_tool_is_named(trusty: Caller) -> None:
    with pytest.raises(NotFound, match=r"\Aunknown tool: memory_dance\Z"):
        trusty.run(Trusty(trusty.subject.engine, Principal()).call("memory_dance", {}))


def test_arguments_may_be_left_out_but_not_be_something_else(trusty: Caller) -> None:
    call = Trusty(trusty.subject.engine, Principal(), "p").call
    assert trusty.run(call("palace_list", None)) == {"palaces": ["p"]}
    for wrong in ([], "x", 1):
        with pytest.raises(ValidationError, match="palace_list: arguments must be an object"):
            trusty.run(call("palace_list", wrong))


def test_a_caller_reaches_only_its_own_palaces(trusty: Caller) -> None:
    trusty.remember(palace="my-project")
    trusty("palace_create", name="other")
    limited = trusty.as_("my-project")
    assert limited("palace_list") == {"palaces": ["my-project"]}
    for tool in PALACE_TOOLS:
        assert isinstance(limited.refused(tool, palace="other", **RIGHT[tool]), Forbidden)
    assert isinstance(limited.refused("palace_create", name="third"), Forbidden)
    assert trusty.as_("my-project", tenant="elsewhere").listed() == []
    reader = trusty.as_("my-project", role="reader")
    assert len(reader.listed()) == 1
    assert isinstance(reader.refused("memory_remember", text="x"), Forbidden)


def test_no_secret_is_kept_wherever_it_is_written(trusty: Caller) -> None:
    secret = "".join(("AK", "IA", "QYLPMN5HHHFPZAM2"))
    trusty("memory_remember", text=f"The key is {secret}", tags=[secret], room=f"about {secret}")
    trusty("palace_create", name="other", description=f"uses {secret}")
    trusty("kg_assert", subject="aws", predicate="key", object=secret, provenance=f"from {secret}")
    trusty.run(trusty.subject.engine.palaces.set_identity(Principal(), "my-project", f"I hold {secret}"))
    (kept,) = trusty.run(trusty.subject.list("my-project"))
    shown = [kept.content, kept.tags, kept.metadata, trusty.recall("the key"), trusty("kg_query", subject="aws"),
             trusty.run(trusty.subject.engine.palaces.get(Principal(), "other"))]  # fmt: skip
    assert secret not in str(shown)
    assert "REDACTED" in kept.content


_VALID: dict[str, Any] = {
    "text": "plain", "query": "plain", "subject": "a", "predicate": "b", "object": "c", "name": "hall",
    "palace": "hall", "drawer_id": "0198c1f2-7b3e-7d10-9a55-3f2a9c1e4b7d",
}  # fmt: skip
_ARGUMENTS = [
    (tool, name, given)
    for tool, (_, properties, _) in TOOLS.items()
    for name, rules in properties.items()
    if rules["type"] in ("string", "array") and name != "query"  # which is asked, not kept, and repeated by the guide
    for given in (("{}", "../{}") if name in ("palace", "name") else ("{}",))
]


@pytest.mark.slow
@pytest.mark.parametrize(("tool", "name", "given"), _ARGUMENTS)
def test_a_secret_in_any_argument_of_any_tool_is_kept_and_said_nowhere(
    trusty: Caller, tool: str, name: str, given: str
) -> None:
    secret = "".join(("gh", "p_", *Random(f"{tool} {name}").choices("0123456789abcdefXYZ", k=36)))
    trusty("palace_create", name="hall")
    _, properties, required = TOOLS[tool]
    arguments = {key: _VALID[key] for key in ("palace", *(required or ())) if key in properties}
    arguments[name] = [given.format(secret)] if properties[name]["type"] == "array" else given.format(secret)
    try:
        said = str(trusty(tool, **arguments))
    except SecretLeakage as refused:
        said = str(refused.to_wire())
    except ValidationError as refused:
        assert name == "drawer_id", "whose form is wrong: whoever sends this on takes the secret out"
        trusty.subject.engine.redactor.redact_fault(refused, Principal())
        said = str(refused.to_wire())
    assert secret not in said
    engine = trusty.subject.engine
    audit = trusty.run(engine.ledger.entries(Principal(), limit=1000))
    kept = [trusty.run(trusty.subject.list("hall")), trusty.run(engine.palaces.all(Principal())), audit]
    kept.append([part.payload for entry in audit for part in entry.parts])
    kept.append(trusty.run(engine.graph.history(Principal(), "hall", "a")))
    assert secret not in repr(kept)


# through the other protocols


def test_what_trusty_stored_is_found_through_memorywire_with_its_fields(trusty: Caller) -> None:
    id = trusty.remember(room="Kitchen", tags=["auth"])
    wire = Memorywire(trusty.subject.engine, Principal())
    found = trusty.run(wire.recall(RecallRequest(agent_id="my-project", query="gateway tokens")))
    (hit,) = found.results
    assert (hit.id, hit.content) == (id, GATEWAY)
    assert hit.metadata == {"room": "Custom(Kitchen)", "tags": ["auth"], "kind": "drawer"}


def test_what_memorywire_remembered_is_a_drawer(trusty: Caller) -> None:
    id = trusty.run(trusty.subject.remember("Alice likes tea", "my-project", tags=["food"], importance=0.9,
                                            metadata={"room": "Kitchen"}))  # fmt: skip
    (drawer,) = trusty.listed(room="Kitchen", tag="food")
    assert (drawer["drawer_id"], drawer["content"], drawer["importance"]) == (id, "Alice likes tea", 0.9)
    assert trusty.recall("tea")[0]["drawer_id"] == id
    assert to_wire(trusty.run(trusty.subject.get(id, "my-project")))["metadata"]["importance"] == 0.9
