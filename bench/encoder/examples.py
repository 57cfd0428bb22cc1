"""Labelled spaces as token ids: what the encoder and its teacher learn from."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from bench.judge.spaces import Question, Space, corpus_spaces
from commonplace.engine.memory.passages import heading
from commonplace.wire.record import Memory

if TYPE_CHECKING:
    from tokenizers import Tokenizer

MAX_TOKENS = 192
FIRST, LAST = 101, 102  # [CLS] and [SEP]
_CATEGORIES = (1, 2, 3, 4)  # of LoCoMo; 5 are questions about the wrong speaker


@dataclass(slots=True)
class Example:
    """A question, by its place among the space's questions, and the memories that answer it."""

    tokens: list[int]
    gold: list[int]
    swapped: list[int] | None = None  # asked about the other of two speakers, of whom nothing of it was said


@dataclass(slots=True)
class Tokens:
    """A space in tokens."""

    name: str
    memories: list[list[int]]
    examples: list[Example]
    beside: list[list[int]]  # for each question, the memories that are neither right nor wrong


class Reader:
    """Texts to ids, without the first and last token, cut to what the encoder reads."""

    def __init__(self, tokenizer: Path) -> None:
        self._tokenizer = _tokenizer(tokenizer)

    def __call__(self, texts: Sequence[str], most: int = MAX_TOKENS) -> list[list[int]]:
        encoded = self._tokenizer.encode_batch(list(texts), add_special_tokens=False)
        return [one.ids[: most - 2] for one in encoded]

    def space(self, space: Space) -> Tokens:
        places = {memory.id: place for place, memory in enumerate(space.memories)}
        speakers = sorted({m.speaker for m in space.memories if m.speaker})
        questions = self([q.text for q in space.questions])
        examples = []
        for question, tokens in zip(space.questions, questions, strict=True):
            gold = sorted(places[id] for id in question.gold)
            told_by = {space.memories[place].speaker for place in gold}
            other = swap_speaker(question.text, speakers) if len(told_by) == 1 else None
            swapped = self([other[1]])[0] if other and told_by == {other[0]} else None
            examples.append(Example(tokens, gold, swapped))
        beside = [sorted(places[id] for id in q.beside if id in places) for q in space.questions]
        return Tokens(space.name, self([shown(m) for m in space.memories]), examples, beside)


@cache
def _tokenizer(path: Path) -> Tokenizer:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def shown(memory: Memory) -> str:
    """As the product gives a memory to the encoder."""
    return heading(memory) + memory.content


def swap_speaker(question: str, speakers: Sequence[str]) -> tuple[str, str] | None:
    """Who of two speakers a question names, and the same question about the other."""
    if len(speakers) != 2:
        return None
    first, second = (name.split()[0] for name in speakers)
    named = [bool(re.search(rf"\b{re.escape(name)}\b", question)) for name in (first, second)]
    if named[0] == named[1]:
        return None
    asked, other = (first, second) if named[0] else (second, first)
    return speakers[0 if named[0] else 1], re.sub(rf"\b{re.escape(asked)}\b", other, question)


def corpus(split: str) -> list[Space]:
    spaces = corpus_spaces()
    for space in spaces:
        space.questions = [q for q in space.questions if q.split == split]
    return spaces


def locomo(path: Path) -> list[Space]:
    """Conversations with the turns that hold each answer; for measuring only."""
    spaces = []
    for entry in json.loads(path.read_text("utf-8")):
        conversation = entry["conversation"]
        memories = []
        for key, turns in conversation.items():
            if re.fullmatch(r"session_\d+", key):
                memories += [
                    Memory(t["dia_id"], "local", "locomo", "episodic", t["text"], speaker=t["speaker"]) for t in turns
                ]
        known = {memory.id for memory in memories}
        questions = []
        for number, q in enumerate(entry["qa"]):
            gold = frozenset(q["evidence"]) & known if q["category"] in _CATEGORIES else frozenset()
            if gold or q["category"] not in _CATEGORIES:
                questions.append(Question(str(number), q["question"], gold, str(q["category"]), "dev"))
        spaces.append(Space(entry["sample_id"], memories, questions))
    return spaces


def leave_out(spaces: Sequence[Space], share: int, seed: int = 7) -> tuple[list[Space], list[Space]]:
    """(the rest, one in `share` of them)."""
    order = list(spaces)
    random.Random(seed).shuffle(order)
    count = len(order) // share
    return order[count:], order[:count]
