"""What a benchmark found: figures, the targets they are held against, and both as a table and as JSON."""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(slots=True)
class Figure:
    name: str
    value: float
    unit: str
    at_most: float | None = None
    at_least: float | None = None

    @property
    def target(self) -> str:
        if self.at_most is not None:
            return f"≤ {self.at_most:g} {self.unit}"
        return f"≥ {self.at_least:g} {self.unit}" if self.at_least is not None else ""

    @property
    def met(self) -> bool | None:
        if self.at_most is not None:
            return self.value <= self.at_most
        return self.value >= self.at_least if self.at_least is not None else None


@dataclass(slots=True)
class Report:
    title: str
    figures: list[Figure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    series: dict[str, Any] = field(default_factory=dict)  # what is plotted, or too long for the table

    def add(
        self, name: str, value: float, unit: str, *, at_most: float | None = None, at_least: float | None = None
    ) -> None:
        self.figures.append(Figure(name, float(value), unit, at_most, at_least))

    def note(self, sentence: str) -> None:
        self.notes.append(sentence)

    def show(self) -> None:
        width = max([len(f.name) for f in self.figures] or [0])
        print(f"\n{self.title}")
        for f in self.figures:
            verdict = {True: "met", False: "MISSED", None: ""}[f.met]
            print(f"  {f.name:<{width}}  {_number(f.value):>10} {f.unit:<9} {f.target:<14} {verdict}".rstrip())
        for sentence in self.notes:
            print(f"  · {sentence}")

    def write(self, folder: Path, name: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        document = {
            "title": self.title,
            "machine": machine(),
            "figures": [{**asdict(f), "met": f.met} for f in self.figures],
            "notes": self.notes,
            "series": self.series,
        }
        (folder / f"{name}.json").write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", "utf-8")


def machine() -> dict[str, Any]:
    return {
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "cores": os.cpu_count(),
        "load": os.getloadavg() if hasattr(os, "getloadavg") else None,
        "machine": platform.machine(),
        "python": platform.python_version(),
    }


def _number(value: float) -> str:
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


class Progress:
    """One line on the terminal, rewritten; nothing where nobody looks, except that it began."""

    def __init__(self, what: str, total: int) -> None:
        self._what, self._total = what, total
        self._started = self._shown = time.monotonic()
        self._live = sys.stderr.isatty()
        self._said = False

    def __call__(self, done: int) -> None:
        now = time.monotonic()
        if now - self._started < 2 or (now - self._shown < (0.2 if self._live else 20) and self._said):
            return
        self._shown, self._said = now, True
        left = (now - self._started) / max(done, 1) * (self._total - done)
        end = "\r" if self._live else "\n"
        print(
            f"  {self._what}: {done:,} of {self._total:,}, {left:.0f} s left   ", end=end, file=sys.stderr, flush=True
        )

    def close(self) -> None:
        if self._live and self._said:
            print(" " * 78, end="\r", file=sys.stderr, flush=True)


def tracked(items: Iterable[T], what: str, total: int) -> Iterator[T]:
    progress = Progress(what, total)
    for done, item in enumerate(items):
        progress(done)
        yield item
    progress.close()


Benchmark = Callable[[Any], Report]
