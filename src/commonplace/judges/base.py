"""What a judge must do, and which one a setting means: `auto`, `none`, or `llm://…`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from commonplace.__about__ import DISTRIBUTION
from commonplace.wire.errors import ValidationError
from commonplace.wire.shown_urls import shown_url


@runtime_checkable
class Judge(Protocol):
    """Deterministic for the same pair, whatever it is judged together with. Called from any thread."""

    name: str
    #: What went wrong of late and was worked around; None when nothing did.
    note: str | None

    def judge(self, question: str, texts: Sequence[str]) -> list[float]:
        """A logit for each text: 0 is the level of "nothing answers", above it the text does."""


class JudgeChoice(NamedTuple):
    """A judge, or none and why."""

    judge: Judge | None
    note: str | None = None


def open_judge(spec: str = "auto") -> JudgeChoice:
    """`auto` is the judge that ships. Loads nothing yet."""
    if spec == "none":
        return JudgeChoice(None)
    if spec == "auto":
        return _shipped_judge()
    if spec.startswith("llm:"):
        from commonplace.judges.llm import open_llm

        shipped, note = _shipped_judge()
        return JudgeChoice(open_llm(spec, inner=shipped), note)
    there_are = "auto, none, llm://HOST/v1?model=NAME"
    raise ValidationError(f"there is no judge {shown_url(spec, ())!r}; there are: {there_are}", field="judge")


def _shipped_judge() -> JudgeChoice:
    # Imported here: with judge "none" not even numpy's part of it is paid for.
    from commonplace.judges import minilm

    if not minilm.MODEL.is_file():
        missing = f"{minilm.MODEL.name} is missing from the package"
        return JudgeChoice(None, f"there is no judge: {missing}; install {DISTRIBUTION} again")
    return JudgeChoice(minilm.MiniLMJudge())
