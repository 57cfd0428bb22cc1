"""Which tests start another process: found by reading their code, and watched while they run."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
NAMES = frozenset({"subprocess", "create_subprocess_exec", "stdio_client", "fork"})
EVENTS = frozenset({"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system"})


def starts_process(item: pytest.Function) -> bool:
    """Whether the test, a fixture of it or a helper that either refers to has one of NAMES in its code.

    Followed are the functions and classes of tests/ and bench/ by their global names. What src/commonplace spawns is
    not seen: a test that makes it do so carries the mark itself, and fails without it (`watch_spawns`).
    """
    definitions = item._fixtureinfo.name2fixturedefs
    fixtures = [each.func for name in item.fixturenames for each in definitions.get(name, ())]
    return any(_names_spawning(each) for each in (item.function, *fixtures))


@cache
def _names_spawning(start: Any) -> bool:
    seen: set[Any] = set()
    waiting = [start]
    while waiting:
        each = inspect.unwrap(waiting.pop())
        if not _is_ours(each) or each in seen:
            continue
        seen.add(each)
        if isinstance(each, FunctionType):
            names = set(_names(each.__code__))
            if names & NAMES:
                return True
            waiting += [each.__globals__[name] for name in names if name in each.__globals__]
        else:
            waiting += [getattr(value, "__func__", value) for value in vars(each).values()]
    return False


def _is_ours(thing: Any) -> bool:
    if not isinstance(thing, FunctionType | type):
        return False
    file = Path(getattr(sys.modules.get(thing.__module__), "__file__", None) or "")
    return any(file.is_relative_to(ROOT / folder) for folder in ("tests", "bench"))


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


_unmarked: pytest.Item | None = None


def watch_spawns() -> None:
    """From now on a test without the mark `process` cannot start a process."""

    def refuse(event: str, args: tuple[Any, ...]) -> None:
        if event in EVENTS and _unmarked is not None:
            pytest.fail(f"{_unmarked.nodeid} starts a process ({event}): mark it with pytest.mark.process")

    sys.addaudithook(refuse)


def running_test(item: pytest.Item | None) -> None:
    global _unmarked
    _unmarked = None if item is None or item.get_closest_marker("process") else item
