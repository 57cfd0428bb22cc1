"""`tune`: fits the weights on the conversations, the tune split of the corpus and the small spaces together."""

from __future__ import annotations

import json
from collections.abc import Callable

from bench.quality import datasets
from bench.quality.measures import Figures, Outcome, by_category, figures
from bench.quality.report import table
from bench.quality.sources import Sources
from bench.quality.stocked import stocked
from bench.quality.tuning import BY_HAND, Sample, balanced, calibrate, collect, fit
from commonplace.engine.recall.ranking import WEIGHTS_FILE

#: How much the conversations, the corpus and the small spaces count, however many questions each has.
SHARES = (1.0, 1.0, 0.4)


async def tune(sources: Sources, *, write: bool) -> None:
    small = datasets.small_spaces()
    everything = [*sources.locomo, *sources.corpus, *small]
    async with stocked(everything, sources.embedder) as held:
        talks, notes, spaces = [await collect(held, some) for some in (sources.locomo, sources.corpus, small)]
    notes = [s for s in notes if s.question.split == "tune"]
    names = sorted({n for s in (*talks, *notes, *spaces) for f in s.features for n in f} - BY_HAND.keys())
    rows: dict[str, Figures] = {}
    rows |= _left_out("conversations", talks, lambda rest: _fit([rest, notes, spaces], names))
    rows |= _left_out("corpus, tune", notes, lambda rest: _fit([talks, rest, spaces], names))
    print(table("Fitted without the conversation, or the agent, that is asked", rows))
    weights = _fit([talks, notes, spaces], names) | BY_HAND
    scale, bias = calibrate(balanced(*_present([talks, notes, spaces])), weights)
    fitted = {"weights": {n: round(weights[n], 3) for n in sorted(weights)}}
    fitted |= {"scale": round(scale, 4), "bias": round(bias, 4)}
    print(json.dumps(fitted, indent=2))
    if write:
        WEIGHTS_FILE.write_text(json.dumps(fitted, indent=2) + "\n")
        print(f"written to {WEIGHTS_FILE}")


def _fit(groups: list[list[Sample]], names: list[str]) -> dict[str, float]:
    return fit(balanced(*_present(groups)), names)


def _present(groups: list[list[Sample]]) -> tuple[list[list[Sample]], list[float]]:
    held = [(group, share) for group, share in zip(groups, SHARES, strict=True) if group]
    return [group for group, _ in held], [share for _, share in held]


def _left_out(
    title: str, samples: list[Sample], fitted: Callable[[list[Sample]], dict[str, float]]
) -> dict[str, Figures]:
    done: list[Outcome] = []
    for space in sorted({s.space for s in samples}):
        weights = fitted([s for s in samples if s.space != space])
        done += [Outcome(s.question, s.order(weights)) for s in samples if s.space == space]
    return {title: figures(done), **{f"  {c}": f for c, f in by_category(done).items()}} if done else {}
