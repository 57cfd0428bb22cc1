"""Searching: in context, by parts, in any script, and behind what replaced it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from token_embedder import HashingTokens

from commonplace.embedders.hashing import HashingEmbedder
from commonplace.engine.engine import Engine
from commonplace.engine.recall import search as searching
from commonplace.engine.recall.ranking import Blend
from commonplace.engine.recall.search import SearchOutcome, search
from commonplace.engine.recall.understanding import ALL, RecallParts
from commonplace.engine.types import Draft, Query, Snapshot
from commonplace.stores.base import Reach, Search
from commonplace.stores.memory import InMemory
from commonplace.stores.optional import Viewable
from commonplace.testing.subject import WHO, FakeClock, Subject
from commonplace.wire.times import DAY_MS

REACH = Reach("local", ("agent",))


def find(
    subject: Subject, run: Any, text: str, reach: Reach = REACH, k: int = 5, parts: RecallParts = ALL, **options: Any
) -> SearchOutcome:
    found: SearchOutcome = run(search(subject.engine._core, reach, text, k, parts=parts, **options))
    return found


def contents(found: SearchOutcome) -> list[str]:
    return [ranked.memory.content for ranked in found.ranked]


async def _recall(subject: Subject, text: str, **query: Any) -> list[str]:
    found = await subject.engine.recall(WHO, Query(("agent",), text, **query))
    return [hit.memory.content for hit in found.hits]


def test_a_turn_is_found_by_the_one_before_it(subject: Subject, run: Any) -> None:
    async def work() -> None:
        talk = ["Which restaurant is it tonight?", "The Georgian place by the canal.", "At half past seven.", "Fine."]
        for n, line in enumerate(talk):
            await subject.remember(line, session_id="s1", speaker=("Alice", "Bob")[n % 2])
        for n in range(30):
            await subject.remember(f"note number {n} on gardening")
        found = await _recall(subject, "Georgian restaurant", k=5)
        assert set(talk[:3]) <= set(found)

    run(work())


def test_long_memories_are_found_by_their_parts_and_returned_whole(subject: Subject, run: Any) -> None:
    async def work() -> None:
        filler = "The weather was mild and the harbour was quiet that day. " * 260
        long = f"{filler}The spare key hangs behind the green barometer. {filler}"
        assert 28_000 < len(long) < 32_768
        await subject.remember(long)
        for n in range(20):
            await subject.remember(f"short note {n} about the harbour")
        assert (await _recall(subject, "spare key behind the barometer", k=3))[0] == long

    run(work())


@pytest.mark.parametrize(
    ("content", "question"),
    [
        ("鍵はマットの下にあります", "鍵はどこ"),
        ("钥匙在垫子下面", "钥匙"),
        ("def parse_frame(buf): return struct.unpack('<I', buf)", "parse_frame"),
        ("panic at segment.rs:288: index out of bounds", "segment.rs:288"),
        ("the launch went well 🎉", "🎉"),
        ("to be or not to be", "to be or not to be"),
    ],
)
def test_scripts_code_and_signs(subject: Subject, run: Any, content: str, question: str) -> None:
    async def work() -> None:
        await subject.remember(content)
        for n in range(20):
            await subject.remember(f"plain note {n} on something else")
        assert (await _recall(subject, question))[0] == content

    run(work())


def test_a_replaced_memory_stands_behind_through_ids_and_aliases(subject: Subject, run: Any) -> None:
    async def work() -> None:
        old = await subject.remember("The staging database listens on port 5432")
        await subject.remember("Staging database: the port is 6543 now", supersedes=[old])
        found = await _recall(subject, "staging database port")
        assert found[:2] == ["Staging database: the port is 6543 now", "The staging database listens on port 5432"]
        await subject.engine.flush()

    run(work())


def test_erased_speakers_are_no_longer_known(subject: Subject, run: Any) -> None:
    async def work() -> None:
        id = await subject.remember("I painted a lake", speaker="Alice")
        await subject.remember("I painted a barn", speaker="Bob")
        assert (await subject.engine._core.primary.context("local", ["agent"])).speakers == {"Alice", "Bob"}
        await subject.engine._core.primary.delete("local", [id])
        assert (await subject.engine._core.primary.context("local", ["agent"])).speakers == {"Bob"}

    run(work())


def test_around_gives_runs_in_the_order_written(subject: Subject, run: Any) -> None:
    async def work() -> None:
        ids = [await subject.remember(f"turn {n}", session_id="s") for n in range(9)]
        alone = await subject.remember("no session")
        await subject.engine._core.primary.delete("local", [ids[4]])
        search = Search(Reach("local", ("agent",)), "turn")
        runs = await subject.engine._core.primary.neighbours_in_session(search, [ids[3], ids[5], ids[0], alone], 1)
        assert sorted([c.memory.content for c in r] for r in runs) == [
            ["turn 0", "turn 1"],
            ["turn 2", "turn 3", "turn 5", "turn 6"],
        ]
        assert all(c.matched == 1 for r in runs for c in r)

    run(work())


def watch(store: Any, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, tuple[Any, ...]]]:
    """What recalls read of the store from now on: `view` if in one look at it, and each read."""
    put: list[tuple[str, tuple[Any, ...]]] = []

    def noted(plain: Any, read: str) -> Any:
        def call(*arguments: Any) -> Any:
            put.append((read, arguments))
            return plain(*arguments)

        return call

    class WatchedView:
        def __init__(self, view: Any) -> None:
            self._view = view

        def __getattr__(self, read: str) -> Any:
            return noted(getattr(self._view, read), read)

    if not isinstance(store, Viewable):
        for read in ("context", "search", "neighbours_in_session"):
            monkeypatch.setattr(store, read, noted(getattr(store, read), read))
        return put
    plain = store.view

    async def view(reach: Reach, work: Any, **options: Any) -> Any:
        put.append(("view", ()))
        return await plain(reach, lambda seen: work(WatchedView(seen)), **options)

    monkeypatch.setattr(store, "view", view)
    return put


@pytest.mark.parametrize(("k", "limit"), [(1, 20), (5, 20), (10, 20), (11, 22), (50, 100)])
def test_each_leg_gives_twice_what_is_wanted_and_never_few(
    subject: Subject, run: Any, monkeypatch: pytest.MonkeyPatch, k: int, limit: int
) -> None:
    put = watch(subject.store, monkeypatch)
    find(subject, run, "blue harbour", k=k)
    assert [arguments[0].limit for read, arguments in put if read == "search"] == [limit]


def test_an_outcome_says_which_embedder_made_the_vector(subject: Subject, run: Any) -> None:
    run(subject.remember("to be or not to be"))
    by_meaning, by_words = find(subject, run, "violins"), find(subject, run, "to be or not to be")
    assert (by_meaning.embedder, by_meaning.dense) == ("hashing-256", True)
    assert (by_words.embedder, by_words.dense) == (None, False), "stop words are looked for as written"
    assert contents(by_words) == ["to be or not to be"]


def test_a_question_of_stop_words_must_be_there_as_written(subject: Subject, run: Any) -> None:
    for content in ("to be or not to be", "be or to not be to", "cats purr"):
        run(subject.remember(content))
    assert contents(find(subject, run, "to be or not")) == ["to be or not to be"]


def test_names_are_taken_out_of_what_is_searched_for(subject: Subject, run: Any) -> None:
    run(subject.remember("I painted a lake", speaker="Alice"))
    assert find(subject, run, "What did Alice paint?").question.sought == "What did paint?"
    whole = find(subject, run, "What did Alice paint?", parts=RecallParts(names=False)).question
    assert (whole.sought, whole.people) == ("What did Alice paint?", ())


@pytest.mark.parametrize(
    ("embedder", "read"), [(HashingEmbedder(), "What did paint?"), (HashingTokens(), "What did Alice paint?")]
)
def test_an_embedder_that_reads_speakers_reads_who_is_asked_about(
    run: Any, monkeypatch: pytest.MonkeyPatch, embedder: HashingEmbedder, read: str
) -> None:
    async def scenario() -> None:
        clock = FakeClock()
        engine = await Engine.open(InMemory(clock), embedder, clock=clock)
        await engine.remember(WHO, Draft("agent", "episodic", "I painted a lake", speaker="Alice"))
        asked: list[str] = []
        really = engine._core.encode_with_info

        async def encode(texts: Sequence[str], *args: Any, **options: Any) -> Any:
            asked.extend(texts)
            return await really(texts, *args, **options)

        monkeypatch.setattr(engine._core, "encode_with_info", encode)
        found = await search(engine._core, REACH, "What did Alice paint?", 5)
        assert asked == [read]
        assert found.question.sought == "What did paint?", "words are looked for without the name all the same"
        assert (found.ranked[0].late is not None) is (read != found.question.sought)
        await engine.close()

    run(scenario())


def test_a_snapshot_is_asked_at_its_own_time_and_knows_nobody(subject: Subject, run: Any) -> None:
    run(subject.remember("I painted a lake", speaker="Alice"))
    then = subject.clock()
    subject.clock.advance(40 * DAY_MS)
    question = "What did Alice paint yesterday?"
    now = find(subject, run, question).question
    past = find(subject, run, question, snapshot=Snapshot(1, then)).question
    assert (now.people, past.people) == (("Alice",), ())
    assert now.periods[0].start - past.periods[0].start == 40 * DAY_MS


def test_the_past_knows_neither_replacements_nor_surroundings(
    subject: Subject, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = run(subject.remember("The staging port is 5432", session_id="s"))
    run(subject.remember("Staging moved to port 6543", supersedes=[old], session_id="s"))
    past = Reach("local", ("agent",), as_of=run(subject.store.sequence("local")))

    put = watch(subject.store, monkeypatch)
    features = {r.memory.id: r.features for r in find(subject, run, "staging port", past).ranked}
    assert set(features) == {m.id for m in run(subject.list())}
    assert not any("replaced" in each for each in features.values())
    assert "neighbours_in_session" not in dict(put), "sessions of the past are not indexed"


def test_what_was_said_around_the_best_becomes_a_candidate_unless_left_out(subject: Subject, run: Any) -> None:
    run(subject.remember("Which restaurant shall it be?", session_id="s"))
    run(subject.remember("zzz", session_id="s"))
    for n in range(40):
        run(subject.remember(f"restaurant number {n}"))
    text = "Which restaurant shall it be?"
    assert "zzz" in contents(find(subject, run, text))
    assert "zzz" not in contents(find(subject, run, text, parts=RecallParts(context=False)))


def test_weights_are_those_that_are_given(subject: Subject, run: Any) -> None:
    run(subject.remember("blue harbour", importance=0.0))
    run(subject.remember("green meadow", importance=1.0))
    assert contents(find(subject, run, "blue harbour"))[0] == "blue harbour"
    assert contents(find(subject, run, "blue harbour", blend=Blend({"importance": 9.0}, 1.0, 0.0)))[0] == "green meadow"


@pytest.mark.parametrize("text", ["blue harbour", "the of and"])
def test_nothing_is_found_where_nothing_is(subject: Subject, run: Any, text: str) -> None:
    run(subject.remember("blue harbour", "other"))
    assert find(subject, run, text).ranked == []


_QUESTIONS = ("What did Alice order?", "the of and", "which pizza, and when?", "Bob's pizza last week", "zzz")


@pytest.mark.parametrize("text", _QUESTIONS)
@pytest.mark.parametrize("reads_names", [True, False])
def test_a_store_that_is_waited_for_at_each_read_gives_the_same(
    subject: Subject, run: Any, monkeypatch: pytest.MonkeyPatch, text: str, reads_names: bool
) -> None:
    for n in range(12):
        speaker, said = ("Alice", f"I order pizza number {n}") if n % 2 else ("Bob", f"Which pizza, Alice? {n}")
        run(subject.remember(said, session_id=f"s{n // 5}", speaker=speaker, event_time=n))
    monkeypatch.setattr(subject.engine._core.embedding, "reads_speakers", reads_names)
    put = watch(subject.store, monkeypatch)
    at_once = find(subject, run, text)
    if isinstance(subject.store, Viewable):
        assert [read for read, _ in put].count("view") == 1
        assert ("context" in dict(put)) == reads_names, "otherwise it was asked for before the question was embedded"
    monkeypatch.setattr(searching, "Viewable", type("NoStore", (), {}))
    assert find(subject, run, text) == at_once
