"""What a judge must do: say how well each memory answers a question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable


@runtime_checkable
class Judge(Protocol):
    """Deterministic for the same pair, whatever it is judged together with. Called from any thread."""

    name: str
    #: What went wrong of late and was worked around; None when nothing did.
    note: str | None

    def judge(self, question: str, texts: Sequence[str]) -> list[float]:
        """A logit for each text: 0 is the level of "nothing answers", above it the text does."""


@runtime_checkable
class Unloadable(Protocol):
    """A judge that holds memory worth giving back; the next `judge` loads it again."""

    def unload(self) -> None: ...
