"""A cross-encoder for each half of the spaces, trained on the other half: what it thinks of pairs it has not seen.

The encoder learns from its logits as well as from the labels, which say nothing of memories that nearly answer.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np

from bench.encoder.examples import Tokens
from bench.encoder.train import Teaching
from bench.judge.network import CrossEncoder
from bench.judge.train import Recipe, read, train

FOLDS = 2
_READ = 24


def teach(start: CrossEncoder, spaces: Sequence[Tokens], nearest: Sequence[np.ndarray]) -> list[Teaching]:
    """For each space, from the cross-encoder that has not seen it; `start` is copied."""
    fold = [n % FOLDS for n in range(len(spaces))]
    taught: dict[int, Teaching] = {}
    for number in range(FOLDS):
        seen = [n for n in range(len(spaces)) if fold[n] != number]
        model = train(copy.deepcopy(start), [spaces[n] for n in seen], [nearest[n] for n in seen], Recipe(), number + 1)
        right = wrong = 0.0
        for n in range(len(spaces)):
            if fold[n] == number:
                taught[n] = _judged(model, spaces[n], nearest[n])
                for example, places, logits in zip(spaces[n].examples, taught[n].places, taught[n].logits, strict=True):
                    if example.gold:
                        right += places[int(np.argmax(logits))] in example.gold
                        wrong += 1
        print(f"fold {number + 1}: the best is right in {right / max(wrong, 1):.3f}", flush=True)
    return [taught[n] for n in range(len(spaces))]


def _judged(model: CrossEncoder, space: Tokens, nearest: np.ndarray) -> Teaching:
    places = [
        [*example.gold, *(int(i) for i in near if i not in example.gold)][: max(_READ, len(example.gold))]
        for example, near in zip(space.examples, nearest, strict=True)
    ]
    pairs = [(e.tokens, space.memories[i]) for e, own in zip(space.examples, places, strict=True) for i in own]
    values = iter(read(model, pairs))
    return Teaching(places, [[next(values) for _ in own] for own in places])
