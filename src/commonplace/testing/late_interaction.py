"""Late interaction: the same score wherever the tokens of a memory lie, of the version and the part that is asked for.

A store that keeps no tokens does without, and says so by None; `keeps_tokens` asks for the scores.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from commonplace.embedders.hashing import HashingEmbedder
from commonplace.stores.base import Candidate, Entry, Reach, Search
from commonplace.stores.optional import FileUpkeep
from commonplace.stores.text import terms
from commonplace.stores.token_vectors import Codes, QuestionTokens, late_scores, quantise
from commonplace.testing.subject import Contract, FakeClock, Subject, scenario
from commonplace.wire.canonical import mint_id
from commonplace.wire.filters import Condition
from commonplace.wire.record import Memory

_WORDS = HashingEmbedder(96)
ASKED = QuestionTokens.of(_WORDS.embed(["blue", "harbour", "boat"]), np.array([0.2, 1.0, 0.5], np.float32))
QUESTION = "blue harbour boat"
VECTOR = HashingEmbedder().embed([QUESTION])[0]


def codes(text: str) -> Codes:
    """The tokens of a text: each word is one."""
    return quantise(_WORDS.embed(text.split()))


def score(*parts: str) -> float:
    """Of the best part."""
    return max(float(late_scores(ASKED, codes(part), [len(part.split())])[0]) for part in parts)


def entry(s: Subject, parts: str | Sequence[str], agent: str = "agent", tokens: bool = True, **fields: Any) -> Entry:
    texts = [parts] if isinstance(parts, str) else list(parts)
    content = "\n".join(texts)
    memory = Memory(mint_id(s.clock()), "local", agent, "semantic", content, created_at=s.clock(), **fields)
    kept = [codes(text) for text in texts] if tokens else None
    return Entry(memory, HashingEmbedder().embed(texts), terms(content), 1, kept)


def _search(*agents: str, limit: int = 50, **reach: Any) -> Search:
    return Search(Reach("local", agents or ("agent",), **reach), QUESTION, VECTOR, limit, tokens=ASKED)


class LateScenarios(Contract):
    keeps_tokens = False

    def assert_scores(self, found: Iterable[Candidate], expected: Mapping[str, float | None]) -> None:
        given = {candidate.memory.content: candidate.late for candidate in found}
        if not self.keeps_tokens and set(given.values()) <= {None}:
            expected = dict.fromkeys(expected)
        assert given == expected

    @scenario()
    async def test_late_interaction_is_that_of_the_best_part(self, s: Subject) -> None:
        long = ["the tax office", "a boat in the blue harbour", "violins"]
        await s.store.put([entry(s, "a red boat"), entry(s, long), entry(s, "harbour tax", tokens=False)])
        expected = {"a red boat": score("a red boat"), "\n".join(long): score(*long), "harbour tax": None}
        assert score(*long) == score(long[1])
        self.assert_scores(await s.store.search(_search()), expected)
        for asked in (replace(_search(), text=None), replace(_search(), vector=None)):
            found = await s.store.search(asked)
            self.assert_scores(found, {c.memory.content: expected[c.memory.content] for c in found})
        without = await s.store.search(replace(_search(), tokens=None))
        assert [candidate.late for candidate in without] == [None] * 3

    @scenario()
    async def test_the_best_by_late_interaction_is_found_among_those_at_hand(self, s: Subject) -> None:
        """It is neither the nearest nor the one with the rarest words, but within `depth` of both."""
        nearest, wordy = entry(s, QUESTION), entry(s, "boat boat blue blue harbour harbour of the harbour")
        nearest.tokens, wordy.tokens = [codes("violin")], [codes("tax")]
        best = entry(s, "one boat, one harbour, ever so much else about cargo and crews and their long days")
        best.tokens = [codes(QUESTION)]
        await s.store.put([nearest, wordy, best])
        few = replace(_search(limit=1), depth=3)
        usual = {candidate.memory.id for candidate in await s.store.search(replace(few, tokens=None))}
        found = await s.store.search(few)
        assert best.memory.id not in usual
        if self.keeps_tokens:
            assert {candidate.memory.id for candidate in found} == {*usual, best.memory.id}
        shallow = await s.store.search(replace(few, depth=1))
        assert {candidate.memory.id for candidate in shallow} == usual

    @scenario()
    async def test_late_interaction_is_of_what_is_in_reach(self, s: Subject) -> None:
        await s.store.put(
            [
                entry(s, "a boat", user_id="alice"),
                entry(s, "a blue harbour", user_id="alice", metadata={"n": 1}),
                entry(s, QUESTION, user_id="bob", metadata={"n": 1}),
                entry(s, "the harbour office", "other"),
                entry(s, "blue boats", "third"),
                entry(s, "harbour of old", expires_at=s.clock()),
                entry(s, "boat of the past", status="archived"),
            ]
        )
        alice, first = Condition(("user_id",), "eq", "alice"), Condition(("metadata", "n"), "eq", 1)
        table: list[tuple[Search, list[str]]] = [
            (_search(where=(alice,), now=s.clock()), ["a boat", "a blue harbour"]),
            (_search(where=(alice, first), now=s.clock()), ["a blue harbour"]),
            (_search("agent", "other", where=(first,)), ["a blue harbour", QUESTION]),
            (_search("agent", "other", now=s.clock()), ["a boat", "a blue harbour", QUESTION, "the harbour office"]),
            (_search("other", "third", "nobody"), ["the harbour office", "blue boats"]),
            (_search(statuses=("archived",)), ["boat of the past"]),
        ]
        for asked, contents in table:
            self.assert_scores(await s.store.search(asked), {content: score(content) for content in contents})

    @scenario()
    async def test_late_interaction_of_a_past_instant_is_that_of_its_versions(self, s: Subject) -> None:
        first = entry(s, "a boat")
        await s.store.put([first, entry(s, "a harbour")])
        before = await s.store.sequence("local")
        second = entry(s, "a blue violin")
        await s.store.put([replace(second, memory=replace(second.memory, id=first.memory.id))])
        then = {"a boat": score("a boat"), "a harbour": score("a harbour")}
        self.assert_scores(await s.store.search(_search(as_of=before)), then)
        now = {"a blue violin": score("a blue violin"), "a harbour": score("a harbour")}
        self.assert_scores(await s.store.search(_search()), now)
        self.assert_scores(await s.store.search(_search(as_of=before + 1)), now)
        await s.store.delete("local", [first.memory.id])
        left = {"a harbour": score("a harbour")}
        for asked in (_search(), _search(as_of=before), _search(as_of=before + 1)):
            self.assert_scores(await s.store.search(asked), left)

    @scenario()
    async def test_neighbours_in_a_session_have_late_interaction(self, s: Subject) -> None:
        said = [entry(s, text, session_id="s") for text in ("a blue boat", "in the harbour", "with violins")]
        for one in said:
            await s.store.put([one])
            s.clock.advance(1)
        (run,) = await s.store.neighbours_in_session(_search(), [said[1].memory.id], 1)
        self.assert_scores(run, {one.memory.content: score(one.memory.content) for one in said})

    def test_late_interaction_survives_reopening_compaction_and_erasure(self, tmp_path: Path) -> None:
        clock = FakeClock()
        texts = [f"boat {n} of the harbour" for n in range(1100)]  # enough for indexes that begin with many
        expected = {text: score(text) for text in texts}
        search = _search(limit=len(texts))
        with self.opened(tmp_path, clock=clock) as (s, run):
            entries = [entry(s, text) for text in texts]
            run(s.store.transact("local", lambda tx: [tx.put(entry) for entry in entries]))
            self.assert_scores(run(s.store.search(search)), expected)
            run(s.store.delete("local", [entries[3].memory.id]))
            del expected[texts[3]]
            self._upkeep(s, run)
            self.assert_scores(run(s.store.search(search)), expected)
        if not self.durable:
            return
        with self.opened(tmp_path, clock=clock) as (s, run):
            self.assert_scores(run(s.store.search(search)), expected)
            run(s.store.delete("local", [entries[5].memory.id]))
            del expected[texts[5]]
            self.assert_scores(run(s.store.search(search)), expected)
            self._upkeep(s, run)
        with self.opened(tmp_path, clock=clock) as (s, run):
            self.assert_scores(run(s.store.search(search)), expected)

    @staticmethod
    def _upkeep(s: Subject, run: Any) -> None:
        if isinstance(s.store, FileUpkeep):
            run(s.store.warm())
            run(s.store.compact())
            assert [f for f in run(s.store.examine(False)) if f.check.startswith("index") and not f.ok] == []
