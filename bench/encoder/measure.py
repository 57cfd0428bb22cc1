"""What an encoder finds by itself: recall and "nothing answers", by pooled vectors, late interaction and both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bench.encoder.examples import Tokens
from bench.encoder.network import Encoder, late_scores
from bench.judge.fitting import auc

_RERANKED = 60  # as many are read by late interaction as in the product
_FALSE_EMPTY = 0.03


class _Tally:
    def __init__(self) -> None:
        self.found: dict[str, list[float]] = {"R@1": [], "R@5": [], "R@10": [], "MRR": []}
        self.answered: list[float] = []
        self.unanswered: list[float] = []

    def add(self, scores: np.ndarray, gold: Sequence[int]) -> None:
        (self.answered if gold else self.unanswered).append(float(scores.max()))
        if not gold:
            return
        order = np.argsort(-scores, kind="stable")
        wanted = set(gold)
        for k in (1, 5, 10):
            self.found[f"R@{k}"].append(len(wanted & set(order[:k].tolist())) / len(wanted))
        self.found["MRR"].append(next((1 / n for n, i in enumerate(order[:50].tolist(), 1) if i in wanted), 0.0))

    def summary(self) -> dict[str, float]:
        table = {name: float(np.mean(values)) for name, values in self.found.items()}
        if self.unanswered:
            table["AUC"] = auc(self.answered, self.unanswered)
            cut = float(np.quantile(self.answered, _FALSE_EMPTY))
            table["empty"] = float(np.mean(np.array(self.unanswered) < cut))
        return {name: round(value, 3) for name, value in table.items()}


@torch.no_grad()
def measure(model: Encoder, spaces: Sequence[Tokens]) -> dict[str, dict[str, float]]:
    tallies = {name: _Tally() for name in ("pooled", "late", "both")}
    model.eval()
    for space in spaces:
        memories = _encode(model, space.memories)
        questions = _encode(model, [e.tokens for e in space.examples])
        for row, example in enumerate(space.examples):
            cosine = memories[0] @ questions[0][row]
            best = cosine.topk(min(_RERANKED, len(cosine))).indices
            tokens, present = memories[1][best].float(), memories[2][best]
            question = slice(row, row + 1)
            late = late_scores(questions[1][question].float(), questions[3][question], tokens, present)[0]
            reread = torch.full_like(cosine, -2)
            reread[best] = late
            scores: dict[str, Tensor] = {"pooled": cosine, "late": reread, "both": cosine + reread}
            for name, tally in tallies.items():
                tally.add(scores[name].cpu().numpy(), example.gold)
    return {name: tally.summary() for name, tally in tallies.items()}


def _encode(model: Encoder, texts: Sequence[Sequence[int]], size: int = 256) -> list[Tensor]:
    """Pooled vectors, token vectors, which tokens there are, and their weights; padded to the longest."""
    length = max(map(len, texts)) + 2
    parts: list[list[Tensor]] = [[], [], [], []]
    for start in range(0, len(texts), size):
        encoded = model.read(texts[start : start + size])
        short = length - encoded.present.shape[1]
        parts[0].append(encoded.pooled)
        parts[1].append(torch.nn.functional.pad(encoded.tokens, (0, 0, 0, short)).half())
        for n, each in ((2, encoded.present), (3, encoded.weights)):
            parts[n].append(torch.nn.functional.pad(each, (0, short)))
    return [torch.cat(each) for each in parts]


def lines(what: str, table: dict[str, dict[str, Any]]) -> str:
    return "\n".join(
        f"{what} {name}: " + " ".join(f"{measure} {value:.3f}" for measure, value in row.items())
        for name, row in table.items()
    )
