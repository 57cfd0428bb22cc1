"""`tune`: fits the weights on the conversations and the tune split of the corpus together.

The small spaces of bench/data/judge take no part: the encoder has learned from their answers, and finds them too well.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from bench.quality.judging import RememberedJudge
from bench.quality.measures import Figures, Outcome, by_category, figures
from bench.quality.report import table
from bench.quality.sources import Sources
from bench.quality.stocked import stocked
from bench.quality.tuning import BY_HAND, Sample, balanced, calibrate, collect, fit, fit_verdicts
from commonplace.engine.recall.ranking import WEIGHTS_FILE, WITHOUT_TOKENS

#: How much the conversations and the corpus count, however many questions each has.
SHARES = (1.0, 2.0)


async def tune(sources: Sources, judge: RememberedJudge, *, write: bool) -> None:
    entries = {}
    for embedder in (sources.embedder, sources.embedder.without_tokens()):
        async with stocked([*sources.locomo, *sources.corpus], embedder) as held:
            talks, notes = [await collect(held, some) for some in (sources.locomo, sources.corpus)]
        notes = [s for s in notes if s.question.split == "tune"]
        name = embedder.name + ("" if embedder.tokens else WITHOUT_TOKENS)
        entries[name] = _fitted(name, talks, notes, judge)
        if not any("late" in f for s in notes for f in s.features):
            break  # it has no tokens to do without
    print(json.dumps(entries, indent=2))
    if write:
        known = json.loads(WEIGHTS_FILE.read_text("utf-8"))
        WEIGHTS_FILE.write_text(json.dumps(known | entries, indent=2) + "\n", "utf-8")
        print(f"written to {WEIGHTS_FILE}")


def _fitted(name: str, talks: list[Sample], notes: list[Sample], judge: RememberedJudge) -> dict[str, Any]:
    names = sorted({n for s in (*talks, *notes) for f in s.features for n in f} - BY_HAND.keys())
    rows: dict[str, Figures] = {}
    rows |= _left_out("conversations", talks, lambda rest: _weights([rest, notes], names), judge)
    rows |= _left_out("corpus, tune", notes, lambda rest: _weights([talks, rest], names), judge)
    print(table(f"{name}: fitted without the conversation, or the agent, that is asked", rows))
    samples = _balanced([talks, notes])
    weights = _weights([talks, notes], names)
    scale, bias = calibrate(samples, weights)
    weights |= fit_verdicts(samples, weights, judge)
    fitted: dict[str, Any] = {"weights": {n: round(weights[n], 3) for n in sorted(weights)}}
    return fitted | {"scale": round(scale, 4), "bias": round(bias, 4)}


def _weights(groups: list[list[Sample]], names: list[str]) -> dict[str, float]:
    return fit(_balanced(groups), names) | BY_HAND


def _balanced(groups: list[list[Sample]]) -> list[tuple[Sample, float]]:
    held = [(group, share) for group, share in zip(groups, SHARES, strict=True) if group]
    return balanced([group for group, _ in held], [share for _, share in held])


def _left_out(
    title: str, samples: list[Sample], fitted: Callable[[list[Sample]], dict[str, float]], judge: RememberedJudge
) -> dict[str, Figures]:
    """As ranked without the judge, and with what it says of the best added for every question."""
    plain: list[Outcome] = []
    judged: list[Outcome] = []
    for space in sorted({s.space for s in samples}):
        rest, asked = [s for s in samples if s.space != space], [s for s in samples if s.space == space]
        weights = fitted(rest)
        with_judge = weights | fit_verdicts([(s, 1.0) for s in rest], weights, judge)
        for sample in asked:
            plain.append(Outcome(sample.question, sample.order(weights)))
            judged.append(Outcome(sample.question, _judged_order(sample, weights, with_judge, judge)))
    if not plain:
        return {}
    rows = {title: figures(plain), f"{title}, all judged": figures(judged)}
    return rows | {f"  {c}": f for c, f in by_category(plain).items()}


def _judged_order(
    sample: Sample, weights: Mapping[str, float], with_judge: Mapping[str, float], judge: RememberedJudge
) -> list[str]:
    return sample.read_by(judge, weights).order(with_judge)
