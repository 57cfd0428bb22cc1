"""Palaces: agents that may be empty, described, and say who they are."""

from __future__ import annotations

from typing import Any

import pytest

from commonplace.engine.palaces.palaces import MAX_TEXT_CHARS, PALACE, Palace
from commonplace.testing.subject import WHO, Subject
from commonplace.wire.errors import Forbidden, NotFound, PayloadTooLarge, ValidationError
from commonplace.wire.filters import parse
from commonplace.wire.record import Principal
from commonplace.wire.times import DAY_MS


def test_a_palace_is_made_once_and_keeps_what_was_said_of_it(subject: Subject, run: Any) -> None:
    palaces = subject.engine.palaces
    made = run(palaces.create(WHO, "garden", "where roses grow"))
    assert made == Palace("garden", "where roses grow", None, subject.clock())
    created = subject.clock()
    subject.clock.advance(10)
    assert run(palaces.create(WHO, "garden", "something else")) == made
    assert run(palaces.create(WHO, "garden")) == made
    run(palaces.set_identity(WHO, "garden", "I am the garden"))
    assert run(palaces.get(WHO, "garden")) == Palace("garden", "where roses grow", "I am the garden", created)
    operations = [entry.operation for entry in run(subject.engine.ledger.entries(WHO))]
    assert operations == ["create_palace", "identify_palace"]


def test_a_palace_without_a_description_may_get_one_later(subject: Subject, run: Any) -> None:
    palaces = subject.engine.palaces
    assert run(palaces.create(WHO, "garden")).description is None
    assert run(palaces.create(WHO, "garden", " later ")).description == "later"


@pytest.mark.parametrize("nothing", [None, "", " \n"])
def test_an_identity_can_be_taken_back(subject: Subject, run: Any, nothing: str | None) -> None:
    palaces = subject.engine.palaces
    assert run(palaces.set_identity(WHO, "garden", " I am ")).identity == "I am"
    assert run(palaces.set_identity(WHO, "garden", nothing)).identity is None
    assert run(palaces.get(WHO, "garden")).identity is None


def test_an_agent_with_a_memory_is_a_palace_since_its_first(subject: Subject, run: Any) -> None:
    palaces = subject.engine.palaces
    run(subject.remember("x", "garden"))
    began = subject.clock()
    subject.clock.advance(10)
    run(subject.remember("y", "garden"))
    assert run(palaces.get(WHO, "garden")) == Palace("garden", created_at=began)
    assert run(palaces.create(WHO, "garden", "d")) == Palace("garden", "d", None, began)


def test_what_is_neither_made_nor_remembered_in_is_no_palace(subject: Subject, run: Any) -> None:
    palaces = subject.engine.palaces
    with pytest.raises(NotFound, match="there is no palace 'garden': make it with palace_create"):
        run(palaces.get(WHO, "garden"))
    with pytest.raises(NotFound):
        run(palaces.recall(WHO, "garden", "x", 5))
    assert run(palaces.ensure(WHO, "garden")).name == "garden"
    assert run(palaces.ensure(WHO, "garden")) == run(palaces.get(WHO, "garden"))
    assert len(run(subject.store.records("local", PALACE))) == 1


def test_palaces_are_those_made_and_those_remembered_in_by_name(subject: Subject, run: Any) -> None:
    palaces = subject.engine.palaces
    for name in ("zoo", "attic"):
        run(palaces.create(WHO, name, f"the {name}"))
    for agent in ("garden", "attic", "not/one", "zoo"):
        run(subject.remember("x", agent))
    assert run(palaces.names(WHO)) == ["attic", "garden", "zoo"]
    assert [(p.name, p.description) for p in run(palaces.all(WHO))] == [
        ("attic", "the attic"), ("garden", None), ("zoo", "the zoo")]  # fmt: skip
    some = Principal("a", role="reader", agents=("g*", "zoo"))
    assert run(palaces.names(some)) == [p.name for p in run(palaces.all(some))] == ["garden", "zoo"]
    assert run(palaces.names(Principal(tenant="acme"))) == []


def test_a_palace_whose_memories_were_all_erased_is_gone(subject: Subject, run: Any) -> None:
    id = run(subject.remember("x", "garden"))
    run(subject.forget(id, agent="garden"))
    assert run(subject.engine.palaces.names(WHO)) == ["garden"], "forgotten softly, it is still one"
    run(subject.forget(id, agent="garden", hard_delete=True))
    assert run(subject.engine.palaces.names(WHO)) == []


@pytest.mark.parametrize("name", ["", " ", "a/b", "a..b", "a\0b", "x" * 129, "half \ud800"])
def test_what_is_no_name_is_refused(subject: Subject, run: Any, name: str) -> None:
    palaces = subject.engine.palaces
    for work in (palaces.get(WHO, name), palaces.create(WHO, name), palaces.set_identity(WHO, name, "x"),
                 palaces.ensure(WHO, name), palaces.recall(WHO, name, "x", 5)):  # fmt: skip
        with pytest.raises(ValidationError):
            run(work)


@pytest.mark.parametrize("verb", ["create", "set_identity"])
def test_what_is_said_of_a_palace_is_checked_like_everything(subject: Subject, run: Any, verb: str) -> None:
    say = getattr(subject.engine.palaces, verb)
    with pytest.raises(PayloadTooLarge, match="at most 16,384 are kept"):
        run(say(WHO, "garden", "x" * (MAX_TEXT_CHARS + 1)))
    with pytest.raises(ValidationError):
        run(say(WHO, "garden", "half \ud800"))
    run(say(WHO, "garden", "token ghp_" + "a1B2c3D4e5" * 4))
    assert "<REDACTED:" in repr(run(subject.engine.palaces.get(WHO, "garden")))
    assert "a1B2c3D4e5" not in repr(run(subject.store.records("local", PALACE)))


def test_readers_look_and_writers_make(subject: Subject, run: Any) -> None:
    palaces = subject.engine.palaces
    run(palaces.create(WHO, "garden"))
    reader, stranger = Principal("r", role="reader"), Principal("s", role="admin", agents=("other",))
    assert run(palaces.get(reader, "garden")).name == "garden"
    for work in (palaces.create(reader, "zoo"), palaces.set_identity(reader, "garden", "x"),
                 palaces.get(stranger, "garden"), palaces.create(stranger, "garden"),
                 palaces.most_important(stranger, "garden", limit=3)):  # fmt: skip
        with pytest.raises(Forbidden):
            run(work)


def test_a_recall_counts_what_the_question_found_and_nothing_else(subject: Subject, run: Any) -> None:
    palaces = subject.engine.palaces
    important = run(subject.remember("the palace burned down once", "garden", importance=0.9))
    wanted = run(subject.remember("roses grow by the gate", "garden", importance=0.1))
    run(palaces.set_identity(WHO, "garden", "I am the garden"))
    found = run(palaces.recall(WHO, "garden", "roses by the gate", 4))
    assert found.identity == "I am the garden"
    assert {place.memory.id for place in found.hits} == {important, wanted}
    run(subject.engine.flush())
    counted = {m.id: m.recalls for m in run(subject.list("garden"))}
    assert counted == {id: int(id in found.found) for id in (important, wanted)}
    assert run(subject.engine.ledger.entries(WHO))[-1].operation == "recall"


def test_the_most_important_by_now_come_first(subject: Subject, run: Any) -> None:
    palaces = subject.engine.palaces
    old = run(subject.remember("old", "garden", importance=0.9))
    subject.clock.advance(180 * DAY_MS)
    new = run(subject.remember("new", "garden", importance=0.5, tags=["x"]))
    plain = run(subject.remember("plain", "garden", importance=0.1))

    def order(where: Any = (), limit: int = 10) -> list[str]:
        return [m.id for m in run(palaces.most_important(WHO, "garden", where, limit=limit))]

    assert order() == [new, old, plain]
    assert order(limit=1) == order(parse({"tags": "x"})) == [new]
    for _ in range(6):
        run(palaces.recall(WHO, "garden", "plain", 1))
    assert order()[0] == new
    assert order().index(plain) < order().index(old), "recalls of a moment ago hold it up"


@pytest.mark.parametrize(("confidence", "kept"), [(0.5, 0.5), (-1.0, 0.0), (7.0, 1.0)])
def test_a_fact_is_stated_in_the_graph_with_the_nearest_confidence(
    subject: Subject, run: Any, confidence: float, kept: float
) -> None:
    run(subject.engine.palaces.assert_fact(WHO, "garden", ("Alice", "likes", "roses"), confidence, ""))
    (fact,) = run(subject.engine.graph.query(WHO, "garden", "Alice"))
    assert (fact.predicate, fact.object, fact.confidence, fact.provenance) == ("likes", "roses", kept, None)


@pytest.mark.parametrize("name", ["a\nb", "a\x1b[31mb", "\x7f"])
def test_no_palace_is_made_under_a_name_with_control_characters(subject: Subject, run: Any, name: str) -> None:
    for work in (subject.engine.palaces.create(WHO, name), subject.engine.palaces.set_identity(WHO, name, "I")):
        with pytest.raises(ValidationError, match="control characters"):
            run(work)
