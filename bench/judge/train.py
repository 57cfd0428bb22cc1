"""Trains the judge from MiniLM's weights on bench/data/judge and writes judge-int8.onnx under bench/results.

First it reads facts invented by the thousand (`bench/judge/invented.py`), then the hand-written spaces.

Each question is a choice among its gold memories, the most similar others, a few random ones, and "none of them",
whose logit is held at 0. That makes 0 the level of "nothing answers" at every question. A second, pairwise loss keeps
single pairs meaningful. Runs with several seeds are averaged in weights.
"""

from __future__ import annotations

import argparse
import copy
import random
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.judge import fitting
from bench.judge.invented import Inventor
from bench.judge.spaces import RESULTS, Question, Space, judge_spaces
from bench.quality.embedding import RememberedEmbedder

if TYPE_CHECKING:
    from bench.judge.network import CrossEncoder

MAX_TOKENS = 160
_UNCASED = 0.15  # so many questions are asked in small letters and without a question mark
_PAIRWISE = 0.5
_WARM_UP = 0.1
_DECAY = 0.05
_ELSEWHERE = 10
_TOLD = 200  # so many steps between two lines
_INVENTOR, _INVENTED_BATCH, _INVENTED_RATE = 11, 64, 1e-4


@dataclass(slots=True)
class Choice:
    """A question with the memories to choose from; the first `gold` of them answer it."""

    question: str
    texts: list[str]
    gold: int


@dataclass(slots=True)
class Asked:
    question: Question
    texts: list[str]
    gold: list[int]
    nearest: list[int]  # all memories of the space, most similar first
    elsewhere: list[list[str]]  # what lies nearest in a few other spaces, none of which answers it

    def choice(self, chance: random.Random, how: argparse.Namespace) -> Choice:
        text = self.question.text
        if chance.random() < _UNCASED:
            text = text.lower().rstrip("?")
        if self.elsewhere and chance.random() < how.elsewhere:
            return Choice(text, chance.choice(self.elsewhere), 0)
        near, far = how.near, how.far
        others = [i for i in self.nearest if i not in self.gold]
        drawn = chance.sample(others[near:], min(far, max(0, len(others) - near)))
        chosen = [*self.gold, *others[:near], *drawn]
        return Choice(text, [self.texts[i] for i in chosen], len(self.gold))


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--invented", type=int, default=60_000, help="questions about invented facts to begin with")
    parser.add_argument("--files", default="*", help="learn from these files of bench/data/judge only, as [a-s]_*")
    parser.add_argument("--questions", type=int, help="learn from so many questions only")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--rate", type=float, default=8e-5)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--near", type=int, default=8, help="most similar memories to choose from")
    parser.add_argument("--far", type=int, default=4, help="random ones beside them")
    parser.add_argument("--elsewhere", type=float, default=0.1, help="share of questions asked of another space")
    parser.add_argument("--batch", type=int, default=24, help="questions at a time")
    parser.add_argument("--leave-out", type=int, default=6, help="keep every Nth space for the report; 0 trains on all")
    parser.add_argument("--check", type=int, help="report on so many of the questions left out only")
    parser.add_argument("--spaces", type=int, help="use so many spaces only, to try things out")
    parser.add_argument("--out", type=Path, default=RESULTS / "judge-int8.onnx")


def main(chosen: argparse.Namespace) -> None:
    try:
        from bench.judge import network
        from bench.judge.export import export
    except ImportError as error:
        raise SystemExit(f"training needs the extra `train` ({error.name} is missing)") from error

    spaces = judge_spaces(chosen.files)[: chosen.spaces]
    kept_back = [s for n, s in enumerate(spaces) if chosen.leave_out and n % chosen.leave_out == 0]
    seen = thinned(asked([s for s in spaces if s not in kept_back]), chosen.questions)
    unseen = thinned(asked(kept_back), chosen.check)
    print(
        f"{len(spaces)} spaces, {len(kept_back)} left out; {len(seen)} questions to learn from, {len(unseen)} to check"
    )
    begun = begin(network.from_minilm(seed=0), chosen.invented)
    models = []
    for seed in range(1, chosen.seeds + 1):
        # All start from the same weights, or their mean would mean nothing.
        models.append(run(copy.deepcopy(begun), seen, chosen, seed))
        if unseen:
            print(f"seed {seed}: {report(models[-1], unseen)}", flush=True)
    model = network.averaged(models)
    if unseen:
        print(f"averaged: {report(model, unseen)}")
    export(model, chosen.out)
    print(f"{chosen.out}: {chosen.out.stat().st_size:,} bytes")


def asked(spaces: Sequence[Space]) -> list[Asked]:
    from commonplace.embedders.minilm import MiniLM
    from commonplace.engine.recall.evidence import text_for_judge
    from commonplace.engine.recall.understanding import analyse

    embedder = RememberedEmbedder(MiniLM())
    chance = random.Random(7)
    found = []
    texts = [[text_for_judge(analyse(""), memory) for memory in space.memories] for space in spaces]
    vectors = [embedder.embed(each) for each in texts]
    for n, space in enumerate(spaces):
        places = {memory.id: i for i, memory in enumerate(space.memories)}
        questions = embedder.embed([q.text for q in space.questions])
        others = [k for k in range(len(spaces)) if k != n]
        for question, asks in zip(space.questions, questions, strict=True):
            gold = sorted(places[id] for id in question.gold)
            nearest = np.argsort(-(vectors[n] @ asks)).tolist()
            elsewhere = [
                [texts[k][i] for i in np.argsort(-(vectors[k] @ asks))[:_ELSEWHERE]]
                for k in chance.sample(others, min(4, len(others)))
            ]
            found.append(Asked(question, texts[n], gold, nearest, elsewhere))
    embedder.close()
    return found


def thinned(questions: list[Asked], count: int | None) -> list[Asked]:
    """At most `count` of them, from all over."""
    return questions if count is None else questions[:: max(1, -(-len(questions) // count))]


def begin(model: CrossEncoder, count: int) -> CrossEncoder:
    """One pass over invented facts."""
    choices = [Choice(item.question, item.texts, item.gold) for item in Inventor(_INVENTOR).items(count)]
    batches = [choices[start : start + _INVENTED_BATCH] for start in range(0, len(choices), _INVENTED_BATCH)]
    _learn(model, batches, _INVENTED_RATE, "invented")
    return model


def run(model: CrossEncoder, questions: Sequence[Asked], chosen: argparse.Namespace, seed: int) -> CrossEncoder:
    chance = random.Random(seed)
    order = list(questions)

    def batches() -> Iterator[list[Choice]]:
        for _ in range(chosen.epochs):
            chance.shuffle(order)
            for start in range(0, len(order) - chosen.batch + 1, chosen.batch):
                yield [q.choice(chance, chosen) for q in order[start : start + chosen.batch]]

    steps = max(1, chosen.epochs * (len(questions) // chosen.batch))
    _learn(model, batches(), chosen.rate, f"seed {seed}", steps=steps, seed=seed)
    return model.eval()


def _learn(
    model: CrossEncoder, batches: Iterable[list[Choice]], rate: float, what: str, *, steps: int = 0, seed: int = 0
) -> None:
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(seed)
    model.to(device).train()
    steps = steps or len(list(batches))
    plain = [p for n, p in model.named_parameters() if n.endswith("bias") or "norm" in n]
    decayed = [p for n, p in model.named_parameters() if not (n.endswith("bias") or "norm" in n)]
    groups = [{"params": decayed, "weight_decay": _DECAY}, {"params": plain, "weight_decay": 0.0}]
    optimiser = torch.optim.AdamW(groups, lr=rate)

    def share(step: int) -> float:
        return min((step + 1) / (_WARM_UP * steps + 1), max(0.02, 1 - step / steps))

    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, share)
    started, total = time.monotonic(), 0.0
    for step, choices in enumerate(batches, 1):
        with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
            logits = model(*_pairs([(c.question, text) for c in choices for text in c.texts], device))
        loss = _loss(logits.float(), choices)
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        total += float(loss.detach())
        if step % _TOLD == 0:
            took = time.monotonic() - started
            print(f"{what}, {step} of {steps}: loss {total / _TOLD:.3f}, {took:.0f} s", flush=True)
            total = 0.0


def _loss(logits: Any, choices: Sequence[Choice]) -> Any:
    from torch.nn import functional

    loss = logits.new_zeros(())
    start = 0
    for choice in choices:
        own = logits[start : start + len(choice.texts)]
        start += len(choice.texts)
        chances = functional.log_softmax(functional.pad(own, (1, 0)), dim=0)  # "none of them" first, at 0
        right = chances[1 : 1 + choice.gold] if choice.gold else chances[:1]
        each = functional.softplus(own[choice.gold :]).sum() / max(1, len(own) - choice.gold)
        each = each + functional.softplus(-own[: choice.gold]).sum()
        loss = loss - right.mean() + _PAIRWISE * each
    return loss / len(choices)


def _pairs(pairs: Sequence[tuple[str, str]], device: str) -> list[Any]:
    import torch

    encoded = _tokenizer().encode_batch(list(pairs))
    return [
        torch.tensor([getattr(one, name) for one in encoded], device=device)
        for name in ("ids", "attention_mask", "type_ids")
    ]


_LOADED: list[Any] = []


def _tokenizer() -> Any:
    if not _LOADED:
        from tokenizers import Tokenizer

        from commonplace.embedders.packaged_files import TOKENIZER

        tokenizer = Tokenizer.from_file(str(TOKENIZER.path))
        tokenizer.enable_truncation(MAX_TOKENS)
        tokenizer.enable_padding()
        _LOADED.append(tokenizer)
    return _LOADED[0]


def report(model: CrossEncoder, questions: Sequence[Asked], best: int = 10) -> str:
    """On questions whose space the model has not seen: its best logit among the most similar memories."""
    import torch

    device = next(model.parameters()).device.type
    yes, no, first = [], [], []
    model.eval()
    with torch.no_grad():
        for one in questions:
            nearest = one.nearest[:best]
            logits = model(*_pairs([(one.question.text, one.texts[i]) for i in nearest], device)).cpu().numpy()
            (yes if one.gold else no).append(float(logits.max()))
            if one.gold:
                first.append(nearest[int(logits.argmax())] in one.gold)
    lost = float(np.quantile(yes, 0.03))
    empty = float(np.mean([logit < lost for logit in no]))
    return f"AUC {fitting.auc(yes, no):.3f}, empty at 3 % false-empty {empty:.3f}, best is gold {np.mean(first):.3f}"
