"""The experiment through the router itself: an engine over SQLite, two stores beside it, of which one or both lie.

Memories are texts and questions are asked in words; what answers is found by the search. The primary is our own and
does not lie: 1 rogue of 3 is one of the two stores beside it, 2 of 3 are both. Every hit is checked against the
primary's rows, which the router always does; `experiment` shows on lists what that check is for.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from bench.adversarial.experiment import GOLD, QUERIES, SEED, SIZES, K
from commonplace.config import RoutingConfig
from commonplace.embedders.hashing import HashingEmbedder
from commonplace.engine import Attachment, BatchItem, Draft, Engine, Query, Settings
from commonplace.stores.base import Candidate, Reach, Search
from commonplace.stores.copies import PrimaryCopy
from commonplace.stores.memory import InMemory
from commonplace.stores.mixins import scan_all
from commonplace.stores.sqlite import SqliteStore
from commonplace.wire.record import Memory, Principal

Attack = Literal["unknown ids", "uncapped scores", "altered texts", "another agent's", "existing ids", "next best"]
ATTACKS: tuple[Attack, ...] = (
    "unknown ids", "uncapped scores", "altered texts", "another agent's", "existing ids", "next best"
)  # fmt: skip
INJECTED, REPLICAS, BATCH = 50, 2, 100
AGENT, NEIGHBOUR, WHO = "agent", "neighbour", Principal()
NOW = 1_750_000_000_000
_SYLLABLES = ("ka", "lo", "mi", "nu", "re", "sa", "ti", "vo", "zu", "be", "do", "fi")
_WORDS = ("harbour", "lantern", "ledger", "orchard", "glacier", "violin", "garden", "anchor", "mill", "bridge", "kiln")


@dataclass(slots=True, frozen=True)
class RouterSetting:
    routing: str = "fan_out"
    fusion: str = "rrf"
    quorum: int = 1
    size: int = 50
    rogues: int = 1
    attack: Attack = "unknown ids"


#: What we recommend where a store beside the first may not be trusted: the first ranks what the others name.
RECOMMENDED: dict[str, Any] = {"routing": "rerank", "fusion": "rrf", "quorum": 1}
#: As (routing, fusion, quorum).
WAYS = (
    ("fan_out", "rrf", 1),
    ("fan_out", "rrf", 2),
    ("fan_out", "max", 1),
    ("fan_out", "weighted", 1),
    ("rerank", "rrf", 1),
)


@dataclass(slots=True)
class RouterOutcome:
    """Averages over the questions. `leak`: hits with a text that is not a row of this agent's. `pushed`: hits that the
    same stores do not give without an attack, and that do not answer. `displaced`: answers of theirs that are gone."""

    setting: RouterSetting
    recall: float = 0.0
    leak: float = 0.0
    pushed: float = 0.0
    displaced: float = 0.0
    returned: float = 0.0

    def document(self) -> dict[str, Any]:
        figures = ("recall", "leak", "pushed", "displaced", "returned")
        return {**asdict(self.setting), **{name: round(getattr(self, name), 4) for name in figures}}


@dataclass(slots=True, frozen=True)
class Question:
    text: str
    gold: frozenset[str]  # the texts that answer


class CompromisedStore(PrimaryCopy):
    """A real store with real copies, which answers as its attacker likes."""

    def __init__(self, name: str) -> None:
        super().__init__(InMemory(lambda: NOW))
        self.name = name
        self.attack: Attack | None = None
        self.known: Sequence[Memory] = ()  # everything the attacker has seen of this agent
        self.elsewhere: Sequence[Memory] = ()
        self.gold: frozenset[str] = frozenset()
        self._honest: dict[tuple[str | None, int], list[Candidate]] = {}

    async def search(self, search: Search) -> list[Candidate]:
        key = (search.text, search.limit)
        if key not in self._honest:  # the same in every setting
            self._honest[key] = await super().search(search)
        honest = self._honest[key]
        return honest if self.attack is None else self._lies(honest)[: search.limit]

    def _lies(self, honest: Sequence[Candidate]) -> list[Candidate]:
        """Without scores of its legs a list stands as it comes."""
        rest = [Candidate(candidate.memory) for candidate in honest]
        others = [memory for memory in self.known if memory.content not in self.gold]
        match self.attack:
            case "unknown ids":
                return [Candidate(_invented(n), score=1.0) for n in range(INJECTED)] + rest
            case "uncapped scores":
                return [Candidate(_invented(n), dense=1e9, score=1e9) for n in range(INJECTED)] + rest
            case "altered texts":
                return [Candidate(replace(c.memory, content=f"{c.memory.content}, or not")) for c in rest]
            case "another agent's":
                return [Candidate(memory, score=1.0) for memory in self.elsewhere[:INJECTED]] + rest
            case "existing ids":
                drawn = random.Random(SEED).sample(others, min(INJECTED, len(others)))
                return [Candidate(memory, score=1.0) for memory in drawn]
            case _:  # what stands next to the answers anyway, so that others' votes add to it
                return [c for c in rest if c.memory.content not in self.gold]


def _invented(n: int) -> Memory:
    return Memory(f"01990000-0000-7000-8000-{n:012d}", "local", AGENT, "semantic", f"a lie, the {n}th", created_at=1)


def _things(count: int) -> list[str]:
    """Words that no other text has."""
    drawn = itertools.islice(itertools.product(_SYLLABLES, repeat=4), 7, None, 97)
    return ["".join(syllables) for syllables in itertools.islice(drawn, count)]


def _corpus(size: int) -> tuple[list[str], list[Question]]:
    """Two texts about each thing that is asked for, and others about nothing in particular."""
    dice = random.Random(SEED)
    things = _things(QUERIES)
    gold = [[f"the {thing} is kept in the {place}" for place in dice.sample(_WORDS, GOLD)] for thing in things]
    texts = [text for pair in gold for text in pair]
    for n in range(size - len(texts)):
        texts.append(f"the {dice.choice(_WORDS)} and the {dice.choice(_WORDS)} were seen on day {n}")
    asked = [f"where is the {thing} kept?" for thing in things]
    questions = [Question(text, frozenset(pair)) for text, pair in zip(asked, gold, strict=True)]
    dice.shuffle(texts)
    return texts, questions


class RouterExperiment:
    """One corpus, filled once; the stores are told how to lie before each round."""

    def __init__(self, size: int, folder: Path) -> None:
        self.size = size
        self._texts, self._questions = _corpus(size)
        self._stores = [CompromisedStore(f"copy{n}") for n in range(REPLICAS)]
        self._primary = SqliteStore(folder / f"{size}.db", lambda: NOW)
        self._calm: dict[tuple[str, str, int], list[list[str]]] = {}

    async def open(self) -> None:
        attached = [Attachment(each.name, lambda each=each: each, 600.0) for each in self._stores]  # type: ignore[misc]
        embedder = HashingEmbedder()
        self.engine = await Engine.open(
            self._primary, embedder, clock=lambda: NOW, replicas=attached, settings=Settings()
        )
        await self.engine.stores.wait_until_open(60)
        for start in range(0, len(self._texts), BATCH):
            drafts = [Draft(AGENT, "semantic", text) for text in self._texts[start : start + BATCH]]
            await self.engine.remember_many(WHO, [BatchItem(draft) for draft in drafts])
        secrets = [Draft(NEIGHBOUR, "semantic", f"the neighbour's secret {n}") for n in range(INJECTED)]
        await self.engine.remember_many(WHO, [BatchItem(draft) for draft in secrets])
        for store in self._stores:
            await self.engine.stores.resync(WHO, store.name)
            store.known = await scan_all(self._primary, Reach(WHO.tenant, (AGENT,)))
            store.elsewhere = await scan_all(self._primary, Reach(WHO.tenant, (NEIGHBOUR,)))

    async def run(self, setting: RouterSetting) -> RouterOutcome:
        way = (setting.routing, setting.fusion, setting.quorum)
        if way not in self._calm:
            self._calm[way] = [await self._ask(setting, question, rogues=0) for question in self._questions]
        outcome, own = RouterOutcome(setting), set(self._texts)
        for question, calm in zip(self._questions, self._calm[way], strict=True):
            found = await self._ask(setting, question, setting.rogues)
            shown = max(len(found), 1)
            outcome.recall += len(question.gold & set(found)) / len(question.gold)
            outcome.leak += sum(text not in own for text in found) / shown
            outcome.pushed += sum(text in own - question.gold - set(calm) for text in found) / shown
            kept = question.gold & set(calm)
            outcome.displaced += len(kept - set(found)) / max(len(kept), 1)
            outcome.returned += len(found)
        for name in ("recall", "leak", "pushed", "displaced", "returned"):
            setattr(outcome, name, getattr(outcome, name) / len(self._questions))
        return outcome

    async def _ask(self, setting: RouterSetting, question: Question, rogues: int) -> list[str]:
        for n, store in enumerate(self._stores):
            store.attack, store.gold = (setting.attack if n < rogues else None), question.gold
        self.engine.settings.routing = replace(RoutingConfig(), recall=setting.routing)
        way: dict[str, Any] = {"fusion": setting.fusion, "quorum": setting.quorum}
        query = Query((AGENT,), question.text, k=K, min_score=0.0, **way)
        return [hit.memory.content for hit in (await self.engine.recall(WHO, query)).hits]

    async def close(self) -> None:
        await self.engine.close()


def settings(size: int) -> Iterator[RouterSetting]:
    for (routing, fusion, quorum), rogues, attack in itertools.product(WAYS, (1, 2), ATTACKS):
        yield RouterSetting(routing, fusion, quorum, size, rogues, attack)


async def _run(sizes: Sequence[int], folder: Path) -> list[RouterOutcome]:
    outcomes = []
    for size in sizes:
        experiment = RouterExperiment(size, folder)
        await experiment.open()
        try:
            outcomes += [await experiment.run(setting) for setting in settings(size)]
        finally:
            await experiment.close()
    return outcomes


def through_router(sizes: Sequence[int] = SIZES) -> list[RouterOutcome]:
    """Every attack at every size, with one rogue and with two, each way of making one list of three."""
    with tempfile.TemporaryDirectory(prefix="commonplace-adversarial-") as folder:
        return asyncio.run(_run(sizes, Path(folder)))
