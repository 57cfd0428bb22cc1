"""A cross-encoder for each half of the spaces, trained on the other half: what it thinks of pairs it has not seen.

The encoder learns from its logits as well as from the labels, which say nothing of memories that nearly answer.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from bench.encoder.examples import FIRST, LAST, Tokens
from bench.encoder.train import Teaching
from bench.judge.network import CrossEncoder

FOLDS = 2
_NEAR, _FAR, _READ = 10, 3, 24
_EPOCHS, _RATE, _BATCH = 3, 8e-5, 32
_PAIRWISE = 0.5
_MAX_TOKENS = 160
_WARM_UP = 0.1
_SWAPPED = 0.1

Pair = tuple[list[int], list[int]]


def teach(start: CrossEncoder, spaces: Sequence[Tokens], nearest: Sequence[np.ndarray]) -> list[Teaching]:
    """For each space, from the cross-encoder that has not seen it; `start` is copied."""
    import copy

    fold = [n % FOLDS for n in range(len(spaces))]
    taught: dict[int, Teaching] = {}
    for number in range(FOLDS):
        seen = [n for n in range(len(spaces)) if fold[n] != number]
        model = copy.deepcopy(start)
        _train(model, [spaces[n] for n in seen], [nearest[n] for n in seen], f"fold {number + 1}")
        right = wrong = 0.0
        for n in range(len(spaces)):
            if fold[n] == number:
                taught[n] = _read(model, spaces[n], nearest[n])
                for example, places, logits in zip(spaces[n].examples, taught[n].places, taught[n].logits, strict=True):
                    if example.gold:
                        right += places[int(np.argmax(logits))] in example.gold
                        wrong += 1
        print(f"fold {number + 1}: the best is right in {right / max(wrong, 1):.3f}", flush=True)
    return [taught[n] for n in range(len(spaces))]


def _train(model: CrossEncoder, spaces: Sequence[Tokens], nearest: Sequence[np.ndarray], what: str) -> None:
    chance = random.Random(3)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model.to(device).train()
    asked = [(s, e) for s, space in enumerate(spaces) for e in range(len(space.examples))]
    steps = _EPOCHS * (len(asked) // _BATCH)
    plain = [p for n, p in model.named_parameters() if n.endswith("bias") or "norm" in n]
    decayed = [p for n, p in model.named_parameters() if not (n.endswith("bias") or "norm" in n)]
    groups = [{"params": decayed, "weight_decay": 0.05}, {"params": plain, "weight_decay": 0.0}]
    optimiser = torch.optim.AdamW(groups, lr=_RATE)

    def share(step: int) -> float:
        return min((step + 1) / (_WARM_UP * steps + 1), max(0.02, 1 - step / steps))

    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, share)
    started = time.monotonic()
    for epoch in range(_EPOCHS):
        chance.shuffle(asked)
        total = 0.0
        for start in range(0, len(asked) - _BATCH + 1, _BATCH):
            pairs: list[Pair] = []
            sizes, golds = [], []
            for s, e in asked[start : start + _BATCH]:
                space, example = spaces[s], spaces[s].examples[e]
                question, gold = example.tokens, example.gold
                others = [int(i) for i in nearest[s][e] if i not in gold and i not in space.beside[e]]
                chosen = [*gold, *others[:_NEAR], *chance.sample(others[_NEAR:], min(_FAR, len(others[_NEAR:])))]
                count = len(gold)
                if example.swapped is not None and chance.random() < _SWAPPED:
                    question, count = example.swapped, 0
                pairs += [(question, space.memories[i]) for i in chosen]
                sizes.append(len(chosen))
                golds.append(count)
            with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
                logits = model(*_tensors(pairs, device))
            loss = _loss(logits.float(), sizes, golds)
            optimiser.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            schedule.step()
            total += float(loss.detach())
        took = time.monotonic() - started
        print(f"{what} epoch {epoch + 1}: {total / max(1, len(asked) // _BATCH):.3f}, {took:.0f} s", flush=True)
    model.eval()


def _loss(logits: Tensor, sizes: Sequence[int], golds: Sequence[int]) -> Tensor:
    """As the judge is trained: a choice with "none of them" at 0, and each pair for itself."""
    loss = logits.new_zeros(())
    for own, gold in zip(logits.split(list(sizes)), golds, strict=True):
        chances = functional.log_softmax(functional.pad(own, (1, 0)), dim=0)
        right = chances[1 : 1 + gold] if gold else chances[:1]
        each = functional.softplus(own[gold:]).sum() / max(1, len(own) - gold) + functional.softplus(-own[:gold]).sum()
        loss = loss - right.mean() + _PAIRWISE * each
    return loss / len(sizes)


@torch.no_grad()
def _read(model: CrossEncoder, space: Tokens, nearest: np.ndarray) -> Teaching:
    device = next(model.parameters()).device.type
    places = [
        [*example.gold, *(int(i) for i in near if i not in example.gold)][: max(_READ, len(example.gold))]
        for example, near in zip(space.examples, nearest, strict=True)
    ]
    pairs = [(e.tokens, space.memories[i]) for e, own in zip(space.examples, places, strict=True) for i in own]
    logits: list[float] = []
    for start in range(0, len(pairs), 1024):
        with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
            logits += model(*_tensors(pairs[start : start + 1024], device)).float().tolist()
    values = iter(logits)
    return Teaching(places, [[next(values) for _ in own] for own in places])


def _tensors(pairs: Sequence[Pair], device: str) -> list[Tensor]:
    rows = []
    for question, memory in pairs:
        head = [FIRST, *question[: _MAX_TOKENS // 2], LAST]
        rows.append((head, [*memory[: _MAX_TOKENS - len(head) - 1], LAST]))
    length = max(len(a) + len(b) for a, b in rows)
    ids, mask, kinds = (np.zeros((len(rows), length), np.int64) for _ in range(3))
    for row, (a, b) in enumerate(rows):
        ids[row, : len(a) + len(b)] = a + b
        mask[row, : len(a) + len(b)] = 1
        kinds[row, len(a) : len(a) + len(b)] = 1
    return [torch.from_numpy(each).to(device, non_blocking=True) for each in (ids, mask, kinds)]
