"""Trains the encoder from MiniLM's weights on bench/data/judge and writes encoder.safetensors under bench/results.

Each question is a choice among the memories of its space, and "nothing answers", which has a learned level of its own:
by the pooled vectors, by late interaction, and by both together. Memories of other spaces are further wrong answers for
the pooled vectors. A pull towards the published vectors keeps what MiniLM knew of the rest of the world. Where there
are logits of a teacher (`bench.encoder.teacher`), the choice is to follow them as well as the labels. Runs with several
seeds are averaged in weights.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from bench.encoder.examples import Tokens
from bench.encoder.network import Encoder, late_scores

_UNCASED = 0.15  # so many questions are asked without their question mark
_WARM_UP = 0.1
_QUESTION_MARK = 1029
_TEACHER_TEMPERATURE = 2.0


@dataclass(slots=True)
class Teaching:
    """A teacher's logits for some memories of a space: for each question their places, and what it thinks of them."""

    places: list[list[int]]
    logits: list[list[float]]


@dataclass(frozen=True, slots=True)
class Recipe:
    epochs: int = 4
    rate: float = 3e-5
    head_rate: float = 3e-4
    spaces: int = 12  # at a time
    questions: int = 6  # of each
    memories: int = 40  # of each
    temperature: float = 0.05
    dense: float = 0.5
    late: float = 0.5
    both: float = 1.0
    keep: float = 1.0
    teacher: float = 0.0
    swapped: float = 0.0  # share of the questions that can be asked of the wrong speaker and are
    refresh: bool = False  # choose near memories by the encoder as it is at the start of each epoch


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--start", type=Path, required=True, help="model.safetensors of all-MiniLM-L6-v2")
    parser.add_argument("--tokenizer", type=Path, required=True, help="its tokenizer.json")
    parser.add_argument("--locomo", type=Path, help="locomo-dev.json, to measure with")
    parser.add_argument("--teacher-logits", type=Path, help="what `teach` wrote")
    parser.add_argument("--leave-out", type=int, default=0, help="keep one space in N for the report; 0 trains on all")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    for name, default in (("epochs", 4), ("rate", 3e-5), ("teacher", 0.5), ("swapped", 0.1), ("keep", 1.0)):
        parser.add_argument(f"--{name}", type=type(default), default=default)
    parser.add_argument("--refresh", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--out", type=Path, required=True)


@dataclass(slots=True)
class Batch:
    questions: list[list[int]]
    memories: list[list[int]]
    gold: list[list[int]]  # by place in `memories`
    own: list[list[int]]  # the memories of the question's own space
    skipped: list[list[int]]  # of those, the ones that are neither right nor wrong
    groups: list[tuple[slice, slice]]  # questions and memories of one space
    question_space: list[int]
    memory_space: list[int]
    question_rows: list[int | None]  # their places among all; None where it is asked otherwise than it was written
    memory_rows: list[int]
    taught: list[tuple[list[int], list[float]]]


class Trainer:
    def __init__(self, spaces: Sequence[Tokens], recipe: Recipe, teaching: Sequence[Teaching] | None = None) -> None:
        self.spaces, self.recipe, self.teaching = spaces, recipe, teaching
        self.nearest: list[np.ndarray] = []
        self._first_memory = np.cumsum([0, *(len(s.memories) for s in spaces)])
        self._first_question = np.cumsum([0, *(len(s.examples) for s in spaces)])

    def run(self, model: Encoder, published: Encoder, seed: int, what: str = "") -> Encoder:
        recipe = self.recipe
        chance = random.Random(seed)
        torch.manual_seed(seed)
        self._published = self.choose_near(published)
        per_batch = recipe.spaces * recipe.questions
        steps = recipe.epochs * (sum(len(s.examples) for s in self.spaces) // per_batch)
        optimiser = self._optimiser(model)

        def share(step: int) -> float:
            return min((step + 1) / (_WARM_UP * steps + 1), max(0.02, 1 - step / steps))

        schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, share)
        started, step = time.monotonic(), 0
        for epoch in range(recipe.epochs):
            if recipe.refresh and epoch:
                self.choose_near(model.eval())
            model.train()
            total, first = 0.0, step
            for batch in self.batches(chance):
                if step == steps:
                    break
                loss = self.loss(model, batch)
                optimiser.zero_grad()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimiser.step()
                schedule.step()
                total += float(loss.detach())
                step += 1
            took = time.monotonic() - started
            mean = total / max(1, step - first)
            print(f"{what} epoch {epoch + 1}, step {step} of {steps}: {mean:.3f}, {took:.0f} s", flush=True)
        return model.eval()

    def _optimiser(self, model: Encoder) -> torch.optim.Optimizer:
        heads = ("token_head", "weight_head", "null", "late_null")
        groups: dict[str, list[torch.nn.Parameter]] = {"head": [], "plain": [], "decayed": []}
        for name, parameter in model.named_parameters():
            plain = name.endswith("bias") or "norm" in name
            groups["head" if name.startswith(heads) else "plain" if plain else "decayed"].append(parameter)
        recipe = self.recipe
        return torch.optim.AdamW(
            [
                {"params": groups["decayed"], "weight_decay": 0.01, "lr": recipe.rate},
                {"params": groups["plain"], "weight_decay": 0.0, "lr": recipe.rate},
                {"params": groups["head"], "weight_decay": 0.0, "lr": recipe.head_rate},
            ]
        )

    def choose_near(self, model: Encoder) -> tuple[Tensor, Tensor]:
        """Gives the vectors of all questions and all memories."""
        self.nearest, questions, memories = _nearest(model, self.spaces)
        return questions, memories

    def batches(self, chance: random.Random) -> Iterator[Batch]:
        recipe = self.recipe
        groups = []
        for number, space in enumerate(self.spaces):
            order = list(range(len(space.examples)))
            chance.shuffle(order)
            groups += [(number, order[i : i + recipe.questions]) for i in range(0, len(order), recipe.questions)]
        chance.shuffle(groups)
        for start in range(0, len(groups) - recipe.spaces + 1, recipe.spaces):
            yield self._batch(groups[start : start + recipe.spaces], chance)

    def _batch(self, groups: Sequence[tuple[int, list[int]]], chance: random.Random) -> Batch:
        batch = Batch([], [], [], [], [], [], [], [], [], [], [])
        for number, chosen in groups:
            space, nearest = self.spaces[number], self.nearest[number]
            kept = {place for i in chosen for place in space.examples[i].gold}
            for rank in range(len(space.memories)):
                if len(kept) >= self.recipe.memories:
                    break
                kept.update(int(nearest[i][rank]) for i in chosen)
            place = {memory: len(batch.memories) + n for n, memory in enumerate(sorted(kept))}
            batch.memories += [space.memories[memory] for memory in sorted(kept)]
            batch.memory_space += [number] * len(kept)
            batch.memory_rows += [int(self._first_memory[number]) + memory for memory in sorted(kept)]
            first = len(batch.questions), min(place.values())
            for i in chosen:
                example = space.examples[i]
                tokens, gold = example.tokens, [place[g] for g in example.gold]
                swapped = example.swapped is not None and chance.random() < self.recipe.swapped
                if swapped and example.swapped is not None:
                    tokens, gold = example.swapped, []
                if tokens[-1:] == [_QUESTION_MARK] and chance.random() < _UNCASED:
                    tokens = tokens[:-1]
                same = tokens is example.tokens
                batch.question_rows.append(int(self._first_question[number]) + i if same else None)
                batch.questions.append(tokens)
                batch.gold.append(gold)
                batch.own.append(list(place.values()))
                batch.skipped.append([place[b] for b in space.beside[i] if b in place])
                batch.question_space.append(number)
                batch.taught.append(([], []) if swapped else self._taught(number, i, place))
            batch.groups.append((slice(first[0], len(batch.questions)), slice(first[1], len(batch.memories))))
        return batch

    def _taught(self, number: int, question: int, place: dict[int, int]) -> tuple[list[int], list[float]]:
        if self.teaching is None:
            return [], []
        one = self.teaching[number]
        pairs = [(place[p], x) for p, x in zip(one.places[question], one.logits[question], strict=True) if p in place]
        return [p for p, _ in pairs], [x for _, x in pairs]

    def loss(self, model: Encoder, batch: Batch) -> Tensor:
        recipe, device = self.recipe, model.null.device
        questions, memories = model.read(batch.questions), model.read(batch.memories, parts=6)
        gold = torch.zeros(len(batch.questions), len(batch.memories), device=device)
        # Memories that were drawn for other questions of the same space may answer this one, too: left out.
        usable = np.array(batch.question_space)[:, None] != np.array(batch.memory_space)[None, :]
        for row, places in enumerate(batch.own):
            usable[row, places] = True
        for row, places in enumerate(batch.skipped):
            usable[row, places] = False
        inside = np.zeros_like(usable)
        for row, places in enumerate(batch.own):
            inside[row, places] = usable[row, places]
        for row, places in enumerate(batch.gold):
            gold[row, places] = 1
            usable[row, places] = inside[row, places] = True
        allowed, own = torch.from_numpy(usable).to(device), torch.from_numpy(inside).to(device)

        cosine = questions.pooled @ memories.pooled.T
        rows = []
        for asked, among in batch.groups:
            length = max(map(len, batch.memories[among])) + 2
            tokens, present = memories.tokens[among, :length], memories.present[among, :length]
            with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
                scores = late_scores(questions.tokens[asked], questions.weights[asked], tokens, present)
            rows.append(functional.pad(scores.float(), (among.start, len(batch.memories) - among.stop)))
        late = torch.cat(rows)

        loss = recipe.dense * self._choice(cosine, model.null, gold, allowed)
        loss = loss + recipe.late * self._choice(late, model.late_null, gold, own)
        both, both_null = (cosine + late) / 2, (model.null + model.late_null) / 2
        loss = loss + recipe.both * self._choice(both, both_null, gold, own)
        if recipe.teacher and any(places for places, _ in batch.taught):
            followed = self._follow(late, model.late_null, batch) + self._follow(both, both_null, batch)
            loss = loss + recipe.teacher * followed
        if recipe.keep:
            before_questions, before_memories = self._published
            written = [row for row, place in enumerate(batch.question_rows) if place is not None]
            known = [place for place in batch.question_rows if place is not None]
            kept = 1 - (memories.pooled * before_memories[batch.memory_rows]).sum(1).mean()
            if written:
                kept = kept + 1 - (questions.pooled[written] * before_questions[known]).sum(1).mean()
            loss = loss + recipe.keep * kept
        return loss

    def _choice(self, scores: Tensor, null: Tensor, gold: Tensor, allowed: Tensor) -> Tensor:
        temperature = self.recipe.temperature
        scores = (scores / temperature).masked_fill(~allowed, -1e4)
        chances = functional.log_softmax(torch.cat([(null / temperature).expand(len(scores), 1), scores], 1), 1)
        count = gold.sum(1, keepdim=True)
        target = torch.cat([(count == 0).float(), gold / count.clamp(min=1)], 1)
        return -(target * chances).sum(1).mean()

    def _follow(self, scores: Tensor, null: Tensor, batch: Batch) -> Tensor:
        """Cross-entropy to the teacher's choice among the memories it has read and "nothing", which it holds at 0."""
        logits = np.full((scores.shape[0], scores.shape[1] + 1), -1e4, np.float32)
        logits[:, 0] = 0
        for row, (places, thought) in enumerate(batch.taught):
            logits[row, [place + 1 for place in places]] = thought
        teacher = torch.from_numpy(logits).to(scores.device)
        target = functional.softmax(teacher / _TEACHER_TEMPERATURE, 1)
        temperature = self.recipe.temperature * _TEACHER_TEMPERATURE
        student = torch.cat([null.expand(len(scores), 1), scores], 1) / temperature
        chances = functional.log_softmax(student.masked_fill(teacher < -1e3, -1e4), 1)
        weight = torch.tensor([float(bool(places)) for places, _ in batch.taught], device=scores.device)
        return -((target * chances).sum(1) * weight).sum() / weight.sum().clamp(min=1)


def nearest(model: Encoder, spaces: Sequence[Tokens]) -> list[np.ndarray]:
    """For each space and question all memories of the space, the most similar first."""
    return _nearest(model, spaces)[0]


@torch.no_grad()
def _nearest(model: Encoder, spaces: Sequence[Tokens]) -> tuple[list[np.ndarray], Tensor, Tensor]:
    memories = pooled(model, [tokens for space in spaces for tokens in space.memories])
    questions = pooled(model, [example.tokens for space in spaces for example in space.examples])
    found = []
    for own, asked in zip(
        memories.split([len(space.memories) for space in spaces]),
        questions.split([len(space.examples) for space in spaces]),
        strict=True,
    ):
        found.append((asked @ own.T).argsort(dim=1, descending=True).cpu().numpy())
    return found, questions, memories


@torch.no_grad()
def pooled(model: Encoder, texts: Sequence[Sequence[int]], size: int = 512) -> Tensor:
    """In batches of like length, in the order given."""
    order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
    out = torch.empty(len(texts), model.kinds.embedding_dim, device=model.null.device)
    for start in range(0, len(order), size):
        some = order[start : start + size]
        out[torch.tensor(some, device=out.device)] = model.read([texts[i] for i in some]).pooled
    return out
