"""For the site's Python page: the examples of docstrings, which are doctests without a fence, become blocks of code."""

from __future__ import annotations

from typing import Any

from griffe import Extension


def fenced(text: str) -> str:
    """Each run of lines from a prompt to the next blank one in a fence."""
    made: list[str] = []
    inside = False
    for line in text.splitlines():
        if not inside and line.lstrip().startswith(">>>"):
            made += ["", "```pycon"] if made and made[-1].strip() else ["```pycon"]
            inside = True
        elif inside and not line.strip():
            made.append("```")
            inside = False
        made.append(line)
    return "\n".join([*made, "```"] if inside else made)


class DoctestFences(Extension):
    def on_instance(self, *, obj: Any, **more: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)
