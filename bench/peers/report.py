"""Results as Markdown: what was measured, the ratios, and why ours loses where it does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bench.peers.comparison import QUALITY, SIZED, Compared, Measure, compared
from bench.peers.results import Results
from bench.peers.systems import SYSTEMS

UNEXPLAINED = "Not yet explained."
_MB = 1e6
_TIMED = (
    ("recall_given", "recall, vector given"),
    ("recall_filtered", "… a tenth of the memories"),
    ("recall_unjudged", "recall and embed, without judging"),
    ("recall_own", "recall and embed, all defaults"),
    ("remember_given", "remember, vector given"),
    ("remember_own", "remember and embed"),
)

_FOUND = (("recall_given", "vector given"), ("recall_filtered", "vector given, a tenth of the memories"))
ENOUGH = 4.5  # memories in an answer of five; fewer are worth saying


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def title(name: str) -> str:
    """Of a row: a system, or one of ours in a variant."""
    system, _, variant = name.partition(", ")
    found = SYSTEMS[system].title if system in SYSTEMS else system
    return f"{found.partition(',')[0]}, {variant}" if variant else found


def number(value: float) -> str:
    """Three digits, without an exponent."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value >= 0.01 else f"{value:.3f}"


def tables(results: Results) -> str:
    parts = []
    for size, rows in sorted(results.sizes.items()):
        parts += [f"### {size:,} memories", "", _times(rows), "", _costs(size, rows), *_failures(rows), ""]
    if results.quality:
        parts += ["### The corpus", "", quality_table(results.quality), *_failures(results.quality), ""]
    if any(value is not None for value in results.syncs.values()):
        parts += ["### Durability", "", _syncs(results), ""]
    return "\n".join(parts)


def _times(rows: Mapping[str, Mapping[str, Any]]) -> str:
    head = ["p50 / p95 / CPU in ms", *(words for _, words in _TIMED)]
    return table(head, [[title(name), *(_cell(row.get(part)) for part, _ in _TIMED)] for name, row in rows.items()])


def _cell(figures: Mapping[str, float] | None) -> str:
    if not figures:
        return "–"
    return " / ".join(number(figures[name]) for name in ("p50_ms", "p95_ms", "cpu_ms"))


def _costs(size: int, rows: Mapping[str, Mapping[str, Any]]) -> str:
    head = ["", "first answer, ms", "of it CPU, ms", "memory, MB", "disk, kB a memory", "bulk load, a second"]
    made = []
    for name, row in rows.items():
        start, disk, load = row.get("start"), row.get("disk_bytes"), row.get("load_seconds")
        cells = [number(start[key]) for key in ("ms", "cpu_ms")] if start else ["–", "–"]
        cells.append(number(start["resident_bytes"] / _MB) if start else "–")
        cells.append(f"{disk / size / 1e3:.1f}" if disk else "–")
        embedded = " (embedding)" if row.get("load_vectors") is False else ""
        cells.append(f"{size / load:,.0f}{embedded}" if load else "–")
        made.append([title(name), *cells])
    return table(head, made)


def quality_table(rows: Mapping[str, Mapping[str, Any]]) -> str:
    head = ["", "recall@5", "MRR", "unanswerable: nothing found", "answerable: nothing found", "AUC"]
    head += ["unanswerable: nothing, with a cut-off", "answerable: nothing, with it"]
    keys = ("recall@5", "mrr", "rightly_empty", "wrongly_empty", "auc", "rightly_empty_cut", "wrongly_empty_cut")
    shares = {"rightly_empty", "wrongly_empty", "rightly_empty_cut", "wrongly_empty_cut"}
    made = []
    for name, row in rows.items():
        # Ours decides for itself when nothing answers; a cut-off is for those that do not.
        own = SYSTEMS[name.partition(", ")[0]].ours
        cells = [
            "–"
            if key not in row or (own and key.endswith("_cut"))
            else f"{row[key]:.0%}"
            if key in shares
            else f"{row[key]:.3f}"
            for key in keys
        ]
        made.append([title(name), *cells])
    return table(head, made)


def _failures(rows: Mapping[str, Mapping[str, Any]]) -> list[str]:
    said = []
    for name, row in rows.items():
        if why := row.get("failed"):
            said.append(f"- {title(name)} could not be measured to the end: {why}.")
        if why := row.get("embedder_note"):
            said.append(f"- {title(name)} was given our embedder: {why}.")
        for part, words in _FOUND:
            hits = row.get(part, {}).get("hits", ENOUGH)
            if hits < ENOUGH:
                said.append(f"- {title(name)} gave {hits:g} of 5 memories on average ({words}).")
    return ["", *said] if said else []


def _syncs(results: Results) -> str:
    rows = [[title(n), "not counted" if v is None else number(v) if v else "0"] for n, v in results.syncs.items()]
    return table(["", "times the disk is made to write, for one memory"], rows)


def ratios_table(results: Results) -> str:
    """One table a size, and one of the corpus; below each, a sentence for every loss."""
    found = list(compared(results))
    notes: list[str] = []
    parts = []
    for size in sorted({each.size for each in found if each.size is not None}):
        here = [each for each in found if each.size == size]
        parts += [f"### {size:,} memories: how many times better", "", _ratios(SIZED, here, notes), ""]
    if here := [each for each in found if each.size is None]:
        parts += ["### The corpus: how many times better", "", _ratios(QUALITY, here, notes), ""]
    parts += [f"{place}. {note}" for place, note in enumerate(notes, 1)]
    return "\n".join(parts)


def _ratios(measures: Sequence[Measure], found: Sequence[Compared], notes: list[str]) -> str:
    systems = [name for name in SYSTEMS if any(each.system == name for each in found)]
    cells = {(each.measure.name, each.system): each for each in found}
    rows = []
    for measure in measures:
        if any((measure.name, name) in cells for name in systems):
            rows.append([measure.title, *(_ratio(cells.get((measure.name, name)), notes) for name in systems)])
    return table(["", *(title(name) for name in systems)], rows)


def _ratio(each: Compared | None, notes: list[str]) -> str:
    if each is None:
        return "–"
    if each.ratio == float("inf"):
        return "theirs is 0"
    shown = f"{each.ratio:.0f} ×" if each.ratio >= 10 else f"{each.ratio:.2g} ×"
    if not each.lost:
        return shown
    sentence = each.reason or UNEXPLAINED
    if sentence not in notes:
        notes.append(sentence)
    return f"**{shown}** [{notes.index(sentence) + 1}]"
