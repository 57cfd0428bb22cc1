"""Every command of the program that does something, by the words that it is called with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from commonplace.cli.app import command


def _leaves(found: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    for name, inner in found.commands.items():
        at = f"{path} {name}".strip()
        if hasattr(inner, "commands"):
            yield from _leaves(inner, at)
        else:
            yield at, inner


LEAVES = dict(_leaves(command()))
