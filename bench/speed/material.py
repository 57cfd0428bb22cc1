"""What is remembered and asked: real texts and real embeddings, as far as they reach; above that, made from them.

A text past the real ones is the first half of one and the second half of another, which keeps the words and how
often they occur. Its vector is a mixture of the two, with a little noise: neighbours stay as crowded as real ones.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.speed.report import Progress
from commonplace.embedders.base import Embedder, Encoding, TokenEmbedder, Vectors
from commonplace.stores.token_vectors import Codes, quantise

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
    tokens: list[Codes] | None = None  # of each text, where the embedder gives any
    question_tokens: list[tuple[Vectors, Vectors]] | None = None  # with their weights

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

    def some_tokens(self, number: int) -> list[Codes] | None:
        """Those of a text of one part, made as the text is."""
        real = len(self.texts)
        if self.tokens is None:
            return None
        if number < real:
            return [self.tokens[number]]
        a, b = (self.tokens[parent] for parent in _parents(number, real))
        return [np.concatenate([a[: len(a) // 2], b[len(b) // 2 :]])]

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


class TokenAgentContext(AgentContext):
    """One that gives the vectors of tokens as well."""

    def __init__(self, material: Material, more: Sequence[str] = COMMON) -> None:
        super().__init__(material, more)
        asked = material.question_tokens or []
        self.token_dimension = asked[0][0].shape[1]
        self._tokens = dict(zip((*material.questions, *more), (*asked, *asked[: len(more)]), strict=True))

    def encode(self, texts: Sequence[str]) -> list[Encoding]:
        return [Encoding(self._vectors[t], *self._tokens[t], np.ones(len(self._tokens[t][0]), bool)) for t in texts]


def known_embedder(material: Material) -> Embedder:
    return AgentContext(material) if material.question_tokens is None else TokenAgentContext(material)


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
            if str(kept["embedder"]) == embedder.name and len(kept["vectors"]) == len(texts):
                return _material(texts, asked, kept)
    memories_made = _encoded(embedder, texts)
    questions_made = _encoded(embedder, asked)
    made = {
        "embedder": np.array(embedder.name),
        "vectors": np.stack([each.vector for each in memories_made]),
        "question_vectors": np.stack([each.vector for each in questions_made]),
    }
    if isinstance(embedder, TokenEmbedder):
        made |= _joined("tokens", [quantise(each.tokens[each.kept]) for each in memories_made])
        made |= _joined("question_tokens", [each.tokens for each in questions_made])
        made |= _joined("question_weights", [each.weights for each in questions_made])
    cache.mkdir(parents=True, exist_ok=True)
    np.savez(file, **made)
    return _material(texts, asked, made)


def _encoded(embedder: Embedder, texts: Sequence[str]) -> list[Encoding]:
    progress = Progress(f"embedding with {embedder.name}", len(texts))
    none = (np.empty((0, 0), np.float32), np.empty(0, np.float32), np.empty(0, bool))
    found: list[Encoding] = []
    for start in range(0, len(texts), 64):
        some = texts[start : start + 64]
        if isinstance(embedder, TokenEmbedder):
            found += embedder.encode(some)
        else:
            found += [Encoding(vector, *none) for vector in np.asarray(embedder.embed(some), np.float32)]
        progress(start)
    progress.close()
    return found


def _joined(name: str, arrays: Sequence[NDArray[Any]]) -> dict[str, NDArray[Any]]:
    return {name: np.concatenate(arrays), f"{name}_ends": np.cumsum([*map(len, arrays)])}


def _material(texts: list[str], asked: list[str], made: Mapping[str, NDArray[Any]]) -> Material:
    material = Material(texts, made["vectors"], asked, made["question_vectors"], str(made["embedder"]))
    if "tokens" in made:
        names = ("tokens", "question_tokens", "question_weights")
        material.tokens, tokens, weights = (np.split(made[n], made[f"{n}_ends"][:-1]) for n in names)
        material.question_tokens = list(zip(tokens, weights, strict=True))
    return material


def _lines(file: Path) -> list[dict]:  # type: ignore[type-arg]
    return [json.loads(line) for line in file.read_text("utf-8").splitlines() if line.strip()] if file.exists() else []
