"""Lists of benign and rogue stores, fused by the code that fuses; and what came of it. Pure, seeded.

As in the paper: two gold memories a query, benign stores that have them on top and random others below, a rogue that
fills the top of its list. What the paper leaves out: larger corpora, scores without a cap, ids that exist, altered
texts, two rogues, a quorum, and the check of every hit against the primary's rows.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from commonplace.engine.recall.fusion import OVERFETCH, fuse

Attack = Literal["unknown ids", "uncapped scores", "existing ids", "altered texts"]
ATTACKS: tuple[Attack, ...] = ("unknown ids", "uncapped scores", "existing ids", "altered texts")
SEED, QUERIES, GOLD, K, STORES = 1337, 20, 2, 5, 3
SIZES = (50, 200, 1000, 5000)
INJECTED = (0, 5, 10, 25, 50)
FUSIONS = ("rrf", "max", "weighted")

#: An id, a raw score, and whether the text that came with it is the primary's.
Hit = tuple[str, float, bool]


@dataclass(slots=True, frozen=True)
class Setting:
    fusion: str = "rrf"
    size: int = 50
    injected: int = 50
    rogues: int = 1
    attack: Attack = "unknown ids"
    quorum: int = 1
    checked: bool = False  # whether a hit counts only if the primary has it with the same text


#: What we recommend: rank fusion, and every hit of a replica checked against the primary's rows. A quorum adds little
#: to that, and with two rogues of three it silences the honest store.
RECOMMENDED: dict[str, Any] = {"fusion": "rrf", "checked": True, "quorum": 1}


@dataclass(slots=True)
class Outcome:
    """Averages over the queries. `leak`: hits with a text of the attacker's. `pushed`: hits of the primary's own texts
    that are there only because a rogue named them. `displaced`: gold hits of the same stores without an attack that are
    gone."""

    setting: Setting
    recall: float = 0.0
    leak: float = 0.0
    pushed: float = 0.0
    displaced: float = 0.0
    returned: float = 0.0  # hits a query

    def document(self) -> dict[str, Any]:
        figures = ("recall", "leak", "pushed", "displaced", "returned")
        return {**asdict(self.setting), **{name: round(getattr(self, name), 4) for name in figures}}


@dataclass(slots=True)
class _World:
    ids: list[str]
    rng: random.Random = field(default_factory=lambda: random.Random(SEED))

    def queries(self) -> list[list[str]]:
        return [self.rng.sample(self.ids, GOLD) for _ in range(QUERIES)]

    def others(self, gold: Sequence[str], count: int) -> list[str]:
        """So many memories that do not answer, in any order."""
        drawn = self.rng.sample(self.ids, min(count + GOLD, len(self.ids)))
        return [id for id in drawn if id not in gold][:count]

    def benign(self, gold: Sequence[str]) -> list[Hit]:
        listed = [*gold, *self.others(gold, OVERFETCH * K - GOLD)]
        return [(id, 1.0 - 0.01 * rank, True) for rank, id in enumerate(listed)]

    def rogue(self, gold: Sequence[str], setting: Setting) -> list[Hit]:
        """The attacker's ids on top, then what looks normal."""
        score = 1e9 if setting.attack == "uncapped scores" else 1.0
        rest = self.benign(gold)
        if setting.attack == "altered texts":
            return [(id, score, False) for id, _, _ in rest] if setting.injected else rest
        if setting.attack == "existing ids":
            top = [(id, score, True) for id in self.others(gold, setting.injected)]
        else:
            # Rogues of one attacker agree with each other.
            top = [(f"a{i:03d}", score, False) for i in range(setting.injected)]
        named = {id for id, _, _ in top}
        return [*top, *(hit for hit in rest if hit[0] not in named)][: OVERFETCH * K]


def run(setting: Setting) -> Outcome:
    world = _World([f"m{i:05d}" for i in range(setting.size)])
    outcome = Outcome(setting)
    for gold in world.queries():
        benign = [world.benign(gold) for _ in range(STORES - setting.rogues)]
        instead = [world.benign(gold) for _ in range(setting.rogues)]
        attacks = [world.rogue(gold, setting)] * setting.rogues
        calm = [id for id, _ in _answer([*benign, *instead], setting)]
        alone = {id for id, _ in _answer(benign, Setting(setting.fusion, setting.size))}
        found = _answer([*benign, *attacks], setting)
        ids = [id for id, _ in found]
        shown = max(len(ids), 1)
        outcome.recall += len(set(ids) & set(gold)) / GOLD
        outcome.leak += sum(not true for _, true in found) / shown
        outcome.pushed += sum(true and id not in alone and id not in gold for id, true in found) / shown
        kept = [id for id in calm if id in gold]
        outcome.displaced += sum(id not in ids for id in kept) / max(len(kept), 1)
        outcome.returned += len(ids)
    for name in ("recall", "leak", "pushed", "displaced", "returned"):
        setattr(outcome, name, getattr(outcome, name) / QUERIES)
    return outcome


def _answer(lists: Sequence[Sequence[Hit]], setting: Setting) -> list[tuple[str, bool]]:
    """The best five, and whether the text that is shown of each is the primary's: a store that is not checked shows
    what it likes of an id that it names first."""
    ranked, lied = {}, set()
    for number, hits in enumerate(lists):
        kept = [hit for hit in hits if hit[2] or not setting.checked]
        ranked[f"store {number}"] = [(id, score) for id, score, _ in kept]
        lied |= {id for id, _, true in kept if not true}
    fused = fuse(ranked, setting.fusion, quorum=setting.quorum)  # type: ignore[arg-type]
    return [(id, id not in lied) for id, _ in fused[:K]]


def published_table() -> list[Outcome]:
    """The paper's Table 4, and the gold displacement that its text speaks of."""
    return [run(Setting(fusion, injected=injected)) for injected in INJECTED for fusion in FUSIONS]


def beyond() -> list[Outcome]:
    """Every attack at every size, with one and two rogues of three, with and without the checks."""
    return [
        run(Setting(fusion, size, 50, rogues, attack, quorum, checked))
        for fusion in FUSIONS
        for size in SIZES
        for rogues in (1, 2)
        for attack in ATTACKS
        for quorum in (1, 2)
        for checked in (False, True)
    ]
