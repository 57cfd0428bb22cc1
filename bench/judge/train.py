"""Trains the judge from the encoder's weights on bench/data/judge and writes its weights.

Each question is a choice among its gold memories, the most similar others, a few random ones, and "none of them",
whose logit is held at 0. That makes 0 the level of "nothing answers" at every question. A second, pairwise loss keeps
single pairs meaningful. Some questions are asked about the other of two speakers or of another space, where nothing
answers them. Runs with several seeds are averaged in weights.
"""

from __future__ import annotations

import argparse
import copy
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from bench.encoder.examples import FIRST, LAST, Tokens
from bench.judge.fitting import auc
from bench.judge.network import CrossEncoder

MAX_TOKENS = 160
_PAIRWISE = 0.5
_WARM_UP = 0.1
_DECAY = 0.05
_QUESTION_MARK = 1029
_TOLD = 200  # so many steps between two lines
_READ = 10  # as many of the nearest are read for the report as in the product

Pair = tuple[list[int], list[int]]
Nearest = Sequence[np.ndarray]  # for each space and question its memories, the most similar first


@dataclass(frozen=True, slots=True)
class Recipe:
    epochs: int = 3
    rate: float = 8e-5
    batch: int = 32  # questions at a time
    near: int = 10  # most similar memories to choose from
    far: int = 3  # random ones beside them
    swapped: float = 0.2  # share of the questions that can be asked of the wrong speaker and are
    elsewhere: float = 0.1  # share of questions asked of another space
    uncased: float = 0.15  # share of questions without their question mark


@dataclass(slots=True)
class Choice:
    """A question with the memories to choose from; the first `gold` of them answer it."""

    question: list[int]
    memories: list[list[int]]
    gold: int


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--encoder", type=Path, required=True, help="weights that `bench.encoder train` wrote")
    parser.add_argument("--tokenizer", type=Path, required=True, help="tokenizer.json")
    parser.add_argument("--locomo", type=Path, help="locomo-dev.json, to measure with")
    parser.add_argument("--layers", type=int, default=6, choices=(3, 6))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2])
    for name, default in (("epochs", 3), ("rate", 8e-5), ("swapped", 0.2), ("elsewhere", 0.1)):
        parser.add_argument(f"--{name}", type=type(default), default=default)
    parser.add_argument("--leave-out", type=int, default=0, help="keep one space in N for the report; 0 trains on all")
    parser.add_argument("--out", type=Path, required=True)


def main(chosen: argparse.Namespace) -> None:
    from bench.encoder.examples import Reader, corpus, leave_out, locomo
    from bench.encoder.network import load as load_encoder
    from bench.encoder.train import nearest
    from bench.judge.network import averaged, from_encoder, save
    from bench.judge.spaces import judge_spaces

    reader = Reader(chosen.tokenizer)
    kept, left = leave_out(judge_spaces(), chosen.leave_out) if chosen.leave_out else (judge_spaces(), [])
    spaces = [reader.space(space) for space in kept]
    sets = {
        "corpus tune": corpus("tune"),
        "left out": left,
        "LoCoMo dev": locomo(chosen.locomo) if chosen.locomo else [],
    }
    checked = {name: [reader.space(space) for space in given] for name, given in sets.items() if given}
    device = "cuda" if torch.cuda.is_available() else "cpu"
    encoder = load_encoder(chosen.encoder).to(device).eval()
    near = nearest(encoder, spaces)
    checked_near = {name: nearest(encoder, given) for name, given in checked.items()}
    print(f"{len(spaces)} spaces, {sum(len(s.examples) for s in spaces)} questions to learn from", flush=True)
    recipe = Recipe(epochs=chosen.epochs, rate=chosen.rate, swapped=chosen.swapped, elsewhere=chosen.elsewhere)
    begun = from_encoder(chosen.encoder, chosen.layers)
    models = []
    for seed in chosen.seeds:
        # All start from the same weights, or their mean would mean nothing.
        models.append(train(copy.deepcopy(begun), spaces, near, recipe, seed))
        save(averaged(models), chosen.out)
        for name, given in checked.items():
            print(f"seed {seed}, {name}: {report(models[-1], given, checked_near[name])}", flush=True)
    if len(models) > 1:
        for name, given in checked.items():
            print(f"averaged, {name}: {report(averaged(models), given, checked_near[name])}", flush=True)


def train(model: CrossEncoder, spaces: Sequence[Tokens], near: Nearest, recipe: Recipe, seed: int) -> CrossEncoder:
    chance = random.Random(seed)
    torch.manual_seed(seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model.to(device).train()
    steps = recipe.epochs * (sum(len(space.examples) for space in spaces) // recipe.batch)
    plain = [p for n, p in model.named_parameters() if n.endswith("bias") or "norm" in n]
    decayed = [p for n, p in model.named_parameters() if not (n.endswith("bias") or "norm" in n)]
    groups = [{"params": decayed, "weight_decay": _DECAY}, {"params": plain, "weight_decay": 0.0}]
    optimiser = torch.optim.AdamW(groups, lr=recipe.rate)

    def share(step: int) -> float:
        return min((step + 1) / (_WARM_UP * steps + 1), max(0.02, 1 - step / steps))

    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, share)
    started, total = time.monotonic(), 0.0
    for step, choices in enumerate(_batches(spaces, near, recipe, chance), 1):
        with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
            logits = model(*_tensors([(c.question, m) for c in choices for m in c.memories], device))
        loss = _loss(logits.float(), choices)
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        total += float(loss.detach())
        if step % _TOLD == 0:
            took = time.monotonic() - started
            print(f"seed {seed}, {step} of {steps}: loss {total / _TOLD:.3f}, {took:.0f} s", flush=True)
            total = 0.0
    return model.eval()


def _batches(spaces: Sequence[Tokens], near: Nearest, recipe: Recipe, chance: random.Random) -> Iterator[list[Choice]]:
    asked = [(s, e) for s, space in enumerate(spaces) for e in range(len(space.examples))]
    for _ in range(recipe.epochs):
        chance.shuffle(asked)
        for start in range(0, len(asked) - recipe.batch + 1, recipe.batch):
            yield [_choice(spaces, near, s, e, recipe, chance) for s, e in asked[start : start + recipe.batch]]


def _choice(spaces: Sequence[Tokens], near: Nearest, s: int, e: int, recipe: Recipe, chance: random.Random) -> Choice:
    space, example = spaces[s], spaces[s].examples[e]
    question, gold = example.tokens, example.gold
    if question[-1:] == [_QUESTION_MARK] and chance.random() < recipe.uncased:
        question = question[:-1]
    if chance.random() < recipe.elsewhere and (other := chance.randrange(len(spaces))) != s:
        memories = spaces[other].memories
        return Choice(question, chance.sample(memories, min(recipe.near, len(memories))), 0)
    others = [int(i) for i in near[s][e] if i not in gold and i not in space.beside[e]]
    drawn = chance.sample(others[recipe.near :], min(recipe.far, len(others[recipe.near :])))
    memories = [space.memories[i] for i in (*gold, *others[: recipe.near], *drawn)]
    if example.swapped is not None and chance.random() < recipe.swapped:
        return Choice(example.swapped, memories, 0)
    return Choice(question, memories, len(gold))


def _loss(logits: Tensor, choices: Sequence[Choice]) -> Tensor:
    loss = logits.new_zeros(())
    for own, choice in zip(logits.split([len(c.memories) for c in choices]), choices, strict=True):
        gold = choice.gold
        chances = functional.log_softmax(functional.pad(own, (1, 0)), dim=0)  # "none of them" first, at 0
        right = chances[1 : 1 + gold] if gold else chances[:1]
        each = functional.softplus(own[gold:]).sum() / max(1, len(own) - gold) + functional.softplus(-own[:gold]).sum()
        loss = loss - right.mean() + _PAIRWISE * each
    return loss / len(choices)


@torch.no_grad()
def read(model: CrossEncoder, pairs: Sequence[Pair], size: int = 1024) -> list[float]:
    """The logit of each."""
    device = next(model.parameters()).device.type
    model.eval()
    order = sorted(range(len(pairs)), key=lambda n: len(pairs[n][0]) + len(pairs[n][1]))
    logits = [0.0] * len(pairs)
    for start in range(0, len(order), size):
        some = order[start : start + size]
        with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
            found = model(*_tensors([pairs[n] for n in some], device)).float().tolist()
        for n, logit in zip(some, found, strict=True):
            logits[n] = logit
    return logits


def _tensors(pairs: Sequence[Pair], device: str) -> list[Tensor]:
    rows = []
    for question, memory in pairs:
        head = [FIRST, *question[: MAX_TOKENS // 2], LAST]
        rows.append((head, [*memory[: MAX_TOKENS - len(head) - 1], LAST]))
    length = max(len(a) + len(b) for a, b in rows)
    ids, mask, kinds = (np.zeros((len(rows), length), np.int64) for _ in range(3))
    for row, (a, b) in enumerate(rows):
        ids[row, : len(a) + len(b)] = a + b
        mask[row, : len(a) + len(b)] = 1
        kinds[row, len(a) : len(a) + len(b)] = 1
    return [torch.from_numpy(each).to(device, non_blocking=True) for each in (ids, mask, kinds)]


def report(model: CrossEncoder, spaces: Sequence[Tokens], near: Nearest) -> str:
    """On questions of spaces the model has not seen: its best logit among the most similar memories."""
    answered, unanswered, first, swaps = [], [], [], []
    for space, order in zip(spaces, near, strict=True):
        nearest = [[int(i) for i in own[:_READ]] for own in order]
        pairs = [(e.tokens, space.memories[i]) for e, own in zip(space.examples, nearest, strict=True) for i in own]
        twisted = [
            (e.swapped, space.memories[i])
            for e, own in zip(space.examples, nearest, strict=True)
            for i in own
            if e.swapped is not None
        ]
        logits, other = iter(read(model, pairs)), iter(read(model, twisted))
        for example, own in zip(space.examples, nearest, strict=True):
            found = [next(logits) for _ in own]
            (answered if example.gold else unanswered).append(max(found))
            if example.gold:
                first.append(own[int(np.argmax(found))] in example.gold)
            if example.swapped is not None:
                swaps.append((max(found), max(next(other) for _ in own)))
    told = f"best is gold {np.mean(first):.3f}"
    if unanswered:
        lost = float(np.quantile(answered, 0.03))
        empty = float(np.mean([logit < lost for logit in unanswered]))
        told += f", AUC {auc(answered, unanswered):.3f}, empty at 3 % false-empty {empty:.3f}"
    if swaps:
        told += f", AUC of the wrong speaker {auc([a for a, _ in swaps], [b for _, b in swaps]):.3f}"
    return told
