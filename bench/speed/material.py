"""What is remembered and asked: real texts and real embeddings, as far as they reach; above that, made from them.

A text past the real ones is the first half of one and the second half of another, which keeps the words and how
often they occur. Its vector is a mixture of the two, with a little noise: neighbours stay as crowded as real ones.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.speed.report import Progress
from commonplace.embedders.base import Embedder, Vectors

DATA = Path(__file__).resolve().parents[1] / "data"
QUESTIONS = 200
_EMBEDDED = 10_000
_NOISE = 0.25

#: Words that many memories hold, as a question of common words asks for them.
COMMON = ("new team meeting this week", "run the tests before the release", "what did we order for Friday lunch")


@dataclass(slots=True)
class Material:
    texts: list[str]
    vectors: Vectors
    questions: list[str]
    question_vectors: Vectors
    embedder: str

    @property
    def dimension(self) -> int:
        return int(self.vectors.shape[1])

    def text(self, number: int) -> str:
        real = len(self.texts)
        if number < real:
            return self.texts[number]
        first, second = _parents(number, real)
        a, b = self.texts[first], self.texts[second]
        return f"{a[: len(a) // 2].rsplit(' ', 1)[0]} {b[len(b) // 2 :].split(' ', 1)[-1]}"

    def some_vectors(self, start: int, end: int) -> Vectors:
        """Those of the texts with these numbers."""
        real = len(self.texts)
        held = np.empty((end - start, self.dimension), np.float32)
        known = max(min(end, real) - start, 0)
        held[:known] = self.vectors[start : start + known]
        if known < end - start:
            parents = np.array([_parents(number, real) for number in range(start + known, end)])
            rng = np.random.default_rng(start)
            share = rng.uniform(0.5, 1.0, (len(parents), 1)).astype(np.float32)
            noise = rng.standard_normal((len(parents), self.dimension), dtype=np.float32)
            noise *= _NOISE / np.sqrt(self.dimension)
            held[known:] = share * self.vectors[parents[:, 0]] + (1 - share) * self.vectors[parents[:, 1]] + noise
        return held / np.linalg.norm(held, axis=1, keepdims=True)


class AgentContext:
    """An embedder that has seen the texts before: what a query costs when its embedding is not counted."""

    def __init__(self, material: Material, more: Sequence[str] = COMMON) -> None:
        self.name = material.embedder
        self.dimension = material.dimension
        self._vectors = dict(zip(material.questions, material.question_vectors, strict=True))
        self._vectors |= {text: material.vectors[i] for i, text in enumerate(more)}

    def embed(self, texts: Sequence[str]) -> Vectors:
        return np.stack([self._vectors[text] for text in texts])


def _parents(number: int, real: int) -> tuple[int, int]:
    """Two texts, different for every number and the same every time."""
    mixed = number * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF
    return (mixed >> 33) % real, ((mixed ^ 0x5851F42D4C957F2D) >> 13) % real


@functools.cache
def real_texts() -> tuple[list[str], list[str]]:
    """(memories, questions) of the labelled corpora, without repetition."""
    memories, questions = [], []
    for line in _lines(DATA / "corpus" / "memories.jsonl"):
        memories.append(line["text"])
    for name in ("answerable", "unanswerable"):
        questions += [line["question"] for line in _lines(DATA / "corpus" / f"{name}.jsonl")]
    for file in sorted((DATA / "judge").glob("*.jsonl")):
        for line in _lines(file):
            memories += [memory["text"] for memory in line["memories"]]
            questions += [asked["q"] for asked in line.get("questions", ())]
    return list(dict.fromkeys(memories)), list(dict.fromkeys(questions))


def gather(cache: Path, embedder: Embedder, most: int = _EMBEDDED) -> Material:
    """Embedded once, then kept in the cache folder. Questions that are not asked serve as memories too."""
    memories, questions = real_texts()
    step = max(len(questions) // QUESTIONS, 1)
    asked = questions[::step][:QUESTIONS]
    wanted = set(asked)
    texts = [text for text in (*memories, *questions) if text not in wanted][:most]
    file = cache / f"material-{len(texts)}.npz"
    if file.exists():
        with np.load(file) as kept:
            if str(kept["embedder"]) == embedder.name and len(kept["vectors"]) == len(texts) + len(asked):
                vectors: NDArray[np.float32] = kept["vectors"]
                return Material(texts, vectors[: len(texts)], asked, vectors[len(texts) :], embedder.name)
    everything = [*texts, *asked]
    progress = Progress(f"embedding with {embedder.name}", len(everything))
    parts = []
    for start in range(0, len(everything), 64):
        parts.append(np.array(embedder.embed(everything[start : start + 64])))
        progress(start)
    progress.close()
    vectors = np.concatenate(parts).astype(np.float32)
    cache.mkdir(parents=True, exist_ok=True)
    np.savez(file, vectors=vectors, embedder=embedder.name)
    return Material(texts, vectors[: len(texts)], asked, vectors[len(texts) :], embedder.name)


def _lines(file: Path) -> list[dict]:  # type: ignore[type-arg]
    return [json.loads(line) for line in file.read_text("utf-8").splitlines() if line.strip()] if file.exists() else []
