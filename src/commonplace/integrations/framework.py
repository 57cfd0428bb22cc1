"""Whether a framework is there and new enough, said in a sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata

from commonplace.__about__ import install_command


@contextmanager
def framework(distribution: str, at_least: str, *, extra: str) -> Iterator[None]:
    """Around an adapter's imports of its framework. What an old version lacks would otherwise be found out in the
    middle of somebody's program, or only show in what it does."""
    advice = install_command(extra)
    try:
        installed = metadata.version(distribution)
    except metadata.PackageNotFoundError:
        raise ModuleNotFoundError(f"{distribution} is not installed: {advice}", name=distribution) from None
    if _release(installed) < _release(at_least):
        raise ImportError(
            f"{distribution} {installed} is too old for commonplace, which needs {at_least} or newer: {advice}",
            name=distribution,
        )
    try:
        yield
    except ImportError as error:
        raise ImportError(
            f"{distribution} {installed} is not as commonplace knows it ({error}): {advice}", name=distribution
        ) from error


def _release(version: str) -> tuple[int, ...]:
    found = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(number) for number in found[0].split(".")) if found else ()
