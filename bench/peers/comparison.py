"""Ratios between a peer and ours, and the sentence that every ratio below one needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bench.peers.reasons import reason
from bench.peers.results import Results
from bench.peers.systems import SYSTEMS

Row = Mapping[str, Any]
_LEVEL = 0.95  # a twentieth is not a difference on a machine that is never quiet


@dataclass(slots=True, frozen=True)
class Measure:
    name: str
    title: str
    value: Callable[[Row], float | None]
    higher_is_better: bool = False
    theirs: Callable[[Row], float | None] | None = None  # where a peer's counterpart has another name


def _of(part: str, figure: str) -> Callable[[Row], float | None]:
    return lambda row: (row.get(part) or {}).get(figure)


def _disk(row: Row) -> float | None:
    return row.get("disk_bytes")


#: What is measured at every size.
SIZED = (
    *(
        Measure(
            f"{part} {figure}",
            f"{title}, {word}",
            _of(part, f"{figure}_ms"),
            theirs=_of("recall_own", f"{figure}_ms") if part == "recall_unjudged" else None,
        )
        for part, title in (
            ("recall_given", "recall, vector given"),
            ("recall_filtered", "recall, vector given, a tenth of the memories"),
            ("recall_unjudged", "recall and embed, ours without judging"),
            ("recall_own", "recall and embed, all defaults"),
            ("remember_given", "remember, vector given"),
            ("remember_own", "remember and embed"),
        )
        for figure, word in (("p50", "p50"), ("p95", "p95"), ("cpu", "CPU"))
    ),
    Measure("start", "from nothing to the first answer", _of("start", "ms")),
    Measure("memory", "memory after it", _of("start", "resident_bytes")),
    Measure("disk", "disk", _disk),
)
#: What is measured once, on the corpus.
QUALITY = (
    Measure("recall@5", "recall@5", lambda row: row.get("recall@5"), higher_is_better=True),
    Measure("mrr", "MRR", lambda row: row.get("mrr"), higher_is_better=True),
    Measure("no-match", "unanswerable questions answered with nothing", lambda row: row.get("rightly_empty"),
            higher_is_better=True),
    Measure("no-match cut", "the same, theirs with a cut-off of the caller's", lambda row: row.get("rightly_empty"),
            higher_is_better=True, theirs=lambda row: row.get("rightly_empty_cut")),
    Measure("auc", "AUC of the best score", lambda row: row.get("auc"), higher_is_better=True),
)  # fmt: skip


@dataclass(slots=True, frozen=True)
class Compared:
    measure: Measure
    system: str
    size: int | None
    ours: float
    theirs: float

    @property
    def ratio(self) -> float:
        """How many times better ours is: above one is a win."""
        if self.measure.higher_is_better:
            return self.ours / self.theirs if self.theirs else float("inf")
        return self.theirs / self.ours if self.ours else float("inf")

    @property
    def lost(self) -> bool:
        return self.ratio < _LEVEL

    @property
    def reason(self) -> str | None:
        return reason(self.measure.name, self.system)


def compared(results: Results) -> Iterator[Compared]:
    """Every pair of figures of which both are there."""
    for size, rows in sorted(results.sizes.items()):
        yield from _pairs(SIZED, rows, size)
    yield from _pairs(QUALITY, results.quality, None)


def _pairs(measures: tuple[Measure, ...], rows: Mapping[str, Row], size: int | None) -> Iterator[Compared]:
    for name, row in rows.items():
        entry = SYSTEMS.get(name)
        if entry is None or entry.ours:
            continue
        # What the corpus shows is the engine's doing, through whichever door.
        own = rows.get(entry.against if size is not None else "sdk") or {}
        for measure in measures:
            ours, theirs = measure.value(own), (measure.theirs or measure.value)(row)
            if ours is not None and theirs is not None:
                yield Compared(measure, name, size, float(ours), float(theirs))


def losses(results: Results) -> list[Compared]:
    return [each for each in compared(results) if each.lost]


def unexplained(results: Results) -> list[Compared]:
    """Losses for which nobody has written down why: the report shows them as such."""
    return [each for each in losses(results) if not each.reason]
