"""The second embedder under the engine: added, followed by who is running already, missing, half-filled, removed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from concepts import SPEC
from store_kinds import STORE_KINDS, open_store
from tampering import raw_database

from commonplace.embedders.base import Embedder
from commonplace.embedders.hashing import HashingEmbedder
from commonplace.embedders.registry import open_embedder
from commonplace.engine import Draft, Engine, Query, Settings
from commonplace.stores.sqlite import SqliteStore
from commonplace.testing.subject import WHO, FakeClock, Subject, open_subject
from commonplace.wire.errors import Forbidden, Unavailable
from commonplace.wire.record import Principal

_TEXTS = ("Alice trinkt Tee", "Bob repariert sein Fahrrad", "die Auslieferung schlug fehl", "Termin beim Zahnarzt")
Run = Callable[[Any], Any]


def concepts() -> Embedder:
    found = open_embedder(SPEC)
    assert found is not None
    return found


class Broken:
    """Fails after so many texts, as a process that is stopped."""

    def __init__(self, after: int) -> None:
        self._inner, self._left = concepts(), after
        self.name, self.dimension = self._inner.name, self._inner.dimension

    def embed(self, texts: Any) -> Any:
        self._left -= len(texts)
        if self._left < 0:
            raise Unavailable("stopped")
        return self._inner.embed(texts)


class Elsewhere(Broken):
    """One that other machines cannot open."""

    def __init__(self) -> None:
        super().__init__(after=1000)
        self.name = "callable:nowhere:embed"


@contextmanager
def opened(kind: str, folder: Path) -> Iterator[tuple[Subject, Run]]:
    clock = FakeClock()
    with open_subject(open_store(kind, folder, clock), clock) as (subject, run):
        yield subject, run


def best(run: Run, subject: Subject, question: str) -> str:
    return str(run(subject.recall(question, k=1))[0].content)


def explained(run: Run, subject: Subject, question: str) -> list[dict[str, float]]:
    found = run(subject.engine.recall(WHO, Query(("agent",), question, explain=True)))
    return [hit.explain["features"] for hit in found.hits]


def count(folder: Path) -> int:
    with raw_database(folder / "commonplace.db") as db:
        return int(db.rows("SELECT count(*) FROM second_vectors")[0][0])


@pytest.mark.parametrize("kind", STORE_KINDS)
def test_a_question_finds_what_was_said_in_another_language(kind: str, tmp_path: Path) -> None:
    with opened(kind, tmp_path) as (subject, run):
        for text in _TEXTS[:2]:
            run(subject.remember(text))
        told: list[tuple[int, int]] = []
        done = run(subject.engine.upkeep.add_second(WHO, concepts(), lambda n, of: told.append((n, of))))
        assert done == {"embedder": SPEC, "dimension": 4, "indexed": 2, "resumed": False}
        assert told[-1] == (2, 2)
        for text in _TEXTS[2:]:  # what is written from now on has its second vector at once
            run(subject.remember(text))
        for question, answer in zip(("le thé", "vélo", "deployment", "dentist"), _TEXTS, strict=True):
            assert best(run, subject, question) == answer
        assert run(subject.engine.upkeep.status(WHO))["second_embedder"] == {
            "name": SPEC, "dimension": 4, "ready": True,
        }  # fmt: skip
        features = explained(run, subject, "vélo")
        assert all("multilingual" in each for each in features)


@pytest.mark.parametrize("kind", STORE_KINDS)
def test_removing_brings_back_what_was_before(kind: str, tmp_path: Path) -> None:
    with opened(kind, tmp_path) as (subject, run):
        for text in _TEXTS:
            run(subject.remember(text))
        before = explained(run, subject, "vélo")
        run(subject.engine.upkeep.add_second(WHO, concepts()))
        assert explained(run, subject, "vélo") != before
        assert run(subject.engine.upkeep.remove_second(WHO)) is True
        assert explained(run, subject, "vélo") == before
        assert "second_embedder" not in run(subject.engine.upkeep.status(WHO))
        assert run(subject.engine.upkeep.remove_second(WHO)) is False


@pytest.mark.parametrize("kind", STORE_KINDS)
def test_stopped_halfway_it_answers_as_before_and_goes_on_where_it_was(kind: str, tmp_path: Path) -> None:
    with opened(kind, tmp_path) as (subject, run):
        for i in range(150):
            run(subject.remember(f"{_TEXTS[i % 4]} {i}"))
        before = explained(run, subject, "vélo")
        with pytest.raises(Unavailable, match="stopped"):
            run(subject.engine.upkeep.add_second(WHO, Broken(after=100)))
        assert explained(run, subject, "vélo") == before
        status = run(subject.engine.upkeep.status(WHO))
        assert status["second_embedder"]["ready"] is False
        assert 0 < status["without_second_vectors"] < 150
        assert "commonplace model add" in status["note"]
        run(subject.remember("neu: Fahrrad"))
        done = run(subject.engine.upkeep.add_second(WHO, concepts()))
        assert done["resumed"] is True
        assert done["indexed"] == status["without_second_vectors"] + 1
        assert "Fahrrad" in best(run, subject, "vélo")


def test_forgetting_for_good_leaves_no_second_vector(tmp_path: Path) -> None:
    with opened("sqlite", tmp_path) as (subject, run):
        ids = [run(subject.remember(text)) for text in _TEXTS]
        run(subject.engine.upkeep.add_second(WHO, concepts()))
        run(subject.update(ids[0], content="Alice trinkt keinen Tee"))
        assert count(tmp_path) == 5  # both versions of the first
        run(subject.forget(ids[0], hard_delete=True))
        assert count(tmp_path) == 3
        assert "Tee" not in " ".join(m.content for m in run(subject.recall("le thé")))


def test_a_process_that_runs_already_follows(tmp_path: Path) -> None:
    clock = FakeClock()
    with opened("sqlite", tmp_path) as (subject, run):
        run(subject.remember(_TEXTS[1]))
        with open_subject(SqliteStore(tmp_path / "commonplace.db", clock), clock) as (other, wait):
            wait(other.engine.upkeep.add_second(WHO, concepts()))
            assert all("multilingual" in each for each in explained(run, subject, "vélo"))
            run(subject.remember(_TEXTS[0]))
            assert count(tmp_path) == 2
            wait(other.engine.upkeep.remove_second(WHO))
            assert not any("multilingual" in each for each in explained(run, subject, "vélo"))


def test_what_was_written_without_gets_its_own_in_the_background(tmp_path: Path) -> None:
    async def scenario() -> None:
        clock = FakeClock()
        path = tmp_path / "commonplace.db"
        first = await Engine.open(SqliteStore(path, clock), HashingEmbedder(), clock=clock)
        late = await Engine.open(
            SqliteStore(path, clock), HashingEmbedder(), clock=clock, settings=Settings(embeds_behind=True)
        )
        await first.upkeep.add_second(WHO, concepts())
        await late.remember(WHO, Draft("agent", "semantic", _TEXTS[1]))  # it has not heard of the second embedder yet
        assert count(tmp_path) == 0
        found = await late.recall(WHO, Query(("agent",), "vélo"))
        assert [hit.memory.content for hit in found.hits] == [_TEXTS[1]]
        await late.wait_for_vectors()
        assert count(tmp_path) == 1
        await first.close()
        await late.close()

    asyncio.run(scenario())


def test_on_a_machine_without_the_model_the_other_legs_answer_and_a_note_says_so(tmp_path: Path) -> None:
    clock = FakeClock()
    with opened("sqlite", tmp_path) as (subject, run):
        run(subject.remember(_TEXTS[1]))
        run(subject.engine.upkeep.add_second(WHO, Elsewhere()))
    with open_subject(SqliteStore(tmp_path / "commonplace.db", clock), clock) as (subject, run):
        found = run(subject.engine.recall(WHO, Query(("agent",), "Fahrrad")))
        assert [hit.memory.content for hit in found.hits] == [_TEXTS[1]]
        assert "nowhere" in found.note
        assert "without this store's second vectors" in found.note
        run(subject.remember(_TEXTS[0]))
        assert run(subject.engine.upkeep.status(WHO))["without_second_vectors"] == 1


def test_a_model_that_fails_is_a_note_and_no_memory_is_refused(tmp_path: Path) -> None:
    with opened("sqlite", tmp_path) as (subject, run):
        run(subject.engine.upkeep.add_second(WHO, Broken(after=1)))
        run(subject.remember(_TEXTS[1]))
        found = run(subject.engine.recall(WHO, Query(("agent",), "Fahrrad")))
        assert [hit.memory.content for hit in found.hits] == [_TEXTS[1]]
        assert found.note.startswith("stopped; until then recall does without")


def test_only_an_operator_adds_or_removes_it(tmp_path: Path) -> None:
    with opened("sqlite", tmp_path) as (subject, run):
        reader = Principal(role="reader")
        with pytest.raises(Forbidden):
            run(subject.engine.upkeep.add_second(reader, concepts()))
        with pytest.raises(Forbidden):
            run(subject.engine.upkeep.remove_second(reader))


@pytest.mark.parametrize("text", ["", " ", "x", "😀", "tee " * 10_000])
def test_any_text_is_remembered_and_asked(tmp_path: Path, text: str) -> None:
    with opened("sqlite", tmp_path) as (subject, run):
        run(subject.engine.upkeep.add_second(WHO, concepts()))
        if text.strip():
            run(subject.remember(text))
            run(subject.recall(text[:100]))
        assert run(subject.engine.upkeep.status(WHO))["without_second_vectors"] == 0
