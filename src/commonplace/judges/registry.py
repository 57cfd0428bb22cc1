"""From what a user wrote to a judge: `auto`, `none`, or `llm://…`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from commonplace.wire.errors import ValidationError

if TYPE_CHECKING:
    from commonplace.judges.base import Judge


class Opened(NamedTuple):
    """A judge, or none and why."""

    judge: Judge | None
    note: str | None = None


def open_judge(spec: str = "auto") -> Opened:
    """`auto` is the judge that ships, where the tokenizer it needs is on this machine. Loads nothing yet."""
    if spec == "none":
        return Opened(None)
    if spec == "auto":
        return _shipped()
    if spec.startswith("llm:"):
        from commonplace.judges.llm import open_llm

        shipped, note = _shipped()
        return Opened(open_llm(spec, inner=shipped), note)
    raise ValidationError(f"there is no judge {spec!r}; there are: auto, none, llm://HOST/v1?model=NAME", field="judge")


def _shipped() -> Opened:
    # Imported here: with judge "none" not even numpy's part of it is paid for.
    from commonplace.judges import minilm

    if not minilm.tokenizer_path().is_file():
        return Opened(None, "there is no judge until `commonplace model build` has run: it needs the model's tokenizer")
    if not minilm.MODEL.is_file():
        return Opened(None, f"there is no judge: {minilm.MODEL.name} is missing from the package")
    return Opened(minilm.MiniLMJudge())
