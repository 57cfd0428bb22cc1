"""What every system is asked to do. Adapters may import their own system and nothing heavy of ours: a fresh process of
each is timed, and what it does not need would be counted against it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float32]
Embed = Callable[[str], Vector]
AGENT = "bench"


@dataclass(slots=True)
class Row:
    """A memory. Without a vector it is for the system, or the embedder it was given, to make one."""

    label: str
    text: str
    vector: Vector | None = None
    agent: str = AGENT
    user: str | None = None
    fields: dict[str, Any] = field(default_factory=dict)  # what a memory has beside its text, as far as it is taken


@dataclass(slots=True)
class Hit:
    label: str
    score: float  # higher is better


class System(Protocol):
    #: What the system embeds with where no vector is given; "" is our embedder.
    embedder: str
    #: Whether what answers is judged, where a system can.
    judge: bool

    def open(self, folder: Path, dimension: int, embed: Embed) -> None:
        """Open what is in the folder, or begin there. `embed` is our embedder, which loads when it is first used."""

    def load(self, rows: Iterable[Sequence[Row]]) -> None:
        """Many at once, by the fastest way the system offers; rows have vectors."""

    def remember(self, row: Row) -> None:
        """One memory, kept when this returns."""

    def recall(self, question: str, vector: Vector | None, agent: str, user: str | None, k: int) -> list[Hit]:
        """The best k of that agent (and user), the best first, by the system's own filter."""

    def begin(self) -> None:
        """It is its turn again, after others had theirs; not timed."""

    def settle(self) -> None:
        """Finish what was put off; counted as CPU, not as waiting."""

    def pids(self) -> list[int]:
        """Other processes that do the work."""

    def close(self) -> None:
        """Leave it so that it can be opened again."""


class BaseAdapter:
    embedder = ""
    judge = True

    def begin(self) -> None:
        pass

    def settle(self) -> None:
        pass

    def pids(self) -> list[int]:
        return []


class GivenVector:
    """For systems that take a function from text to vector: the vector at hand, or else the embedder's."""

    def __init__(self, embed: Embed) -> None:
        self._embed = embed
        self._given: dict[str, Vector] = {}

    def give(self, text: str, vector: Vector | None) -> None:
        self._given = {} if vector is None else {text: vector}

    def __call__(self, text: str) -> Vector:
        found = self._given.get(text)
        return self._embed(text) if found is None else found


def no_bytecode_left_out() -> dict[str, str]:
    """The environment for a server: compiled files are kept, as an installed program has them."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
