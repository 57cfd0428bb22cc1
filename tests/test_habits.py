"""Tests neither wait nor time, so that a busy machine cannot fail them; and every folder has quick ones."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
TOOL = TESTS / "requirements" / "mutants.py"  # no test: it says how long each took
FILES = sorted(path for path in TESTS.rglob("*.py") if path != TOOL)
#: Why a line may: "path:source of the line" → reason.
ALLOWED: dict[str, str] = {}

CLOCKS = {
    f"{name}{unit}"
    for name in ("monotonic", "perf_counter", "process_time", "thread_time", "time")
    for unit in ("", "_ns")
}


def _called(node: ast.AST) -> str:
    """`time.sleep` for a call of it, `sleep` where the function was imported; nothing for anything else."""
    if not isinstance(node, ast.Call):
        return ""
    match node.func:
        case ast.Name(name):
            return name
        case ast.Attribute(ast.Name(module), name):
            return f"{module}.{name}"
        case _:
            return ""


def _is_wait(node: ast.AST) -> bool:
    if isinstance(node, ast.Constant):  # a program that is handed to another process
        return isinstance(node.value, str) and "time.sleep(" in node.value and "\n" in node.value
    if not isinstance(node, ast.Call) or _called(node).split(".")[-1] != "sleep":
        return False
    return ast.unparse(node.args[0]) != "0" if node.args else True


def _reads_clock(node: ast.AST, tainted: set[str]) -> bool:
    return any(
        (isinstance(each, ast.Name) and each.id in tainted)
        or (_called(each).removeprefix("time.") in CLOCKS and _called(each) != "time")
        for each in ast.walk(node)
    )


def _tainted(tree: ast.Module) -> set[str]:
    """The names of variables that hold a reading of a clock or what was computed from one, and of what returns one."""
    tainted: set[str] = set()
    while True:
        found = set(tainted)
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr) and node.value is not None:
                if _reads_clock(node.value, tainted):
                    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                    found |= {each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)}
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                returned = [each.value for each in ast.walk(node) if isinstance(each, ast.Return) and each.value]
                if any(_reads_clock(value, tainted) for value in returned):
                    found.add(node.name)
        if found == tainted:
            return tainted
        tainted = found


def offences(source: str) -> Iterator[tuple[int, str]]:
    """(line, what is wrong) for each wait, each comparison with a clock and each deadline of a property."""
    if not any(word in source for word in ("sleep", "time", "monotonic", "perf_counter", "deadline")):
        return
    tree = ast.parse(source)
    tainted = _tainted(tree)
    for node in ast.walk(tree):
        if _is_wait(node):
            yield node.lineno, "waits: use an event, a FakeClock or asyncio.sleep(0)"
        elif isinstance(node, ast.Compare) and _reads_clock(node, tainted):
            yield node.lineno, "compares a clock: count the work, or give so much that what is slow never ends"
        elif isinstance(node, ast.keyword) and node.arg == "deadline" and ast.unparse(node.value) != "None":
            yield node.lineno, "gives a property a deadline, which is a wall clock"


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(TESTS)))
def test_no_test_waits_or_times(path: Path) -> None:
    source = path.read_text("utf-8")
    lines = source.splitlines()
    where = path.relative_to(TESTS)
    found = [f"tests/{where}:{line} {wrong}" for line, wrong in offences(source)
             if f"{where}:{lines[line - 1].strip()}" not in ALLOWED]  # fmt: skip
    assert found == []


def test_every_folder_has_a_test_that_is_quick(collected_tests: dict[str, bool]) -> None:
    folders = {str(Path(name.split("::")[0]).parent) for name in collected_tests}
    folders.discard("tests/browser")  # each of them starts Chromium
    quick = {str(Path(name.split("::")[0]).parent) for name, is_quick in collected_tests.items() if is_quick}
    assert folders == quick, "make test-fast would leave these folders out"


def test_every_allowance_is_used_and_says_why() -> None:
    for key, why in ALLOWED.items():
        path, _, line = key.partition(":")
        assert line in (TESTS / path).read_text("utf-8"), key
        assert why.strip(), key


# What is found, and what is not.


@pytest.mark.parametrize(
    "source",
    [
        "time.sleep(0.1)",
        "from time import sleep\nsleep(1)",
        "await asyncio.sleep(0.01)",
        "await anyio.sleep(pause)",
        'run("import time\\ntime.sleep(60)")',
        "assert time.monotonic() - started < 5",
        "took = time.perf_counter() - started\nassert took < 5",
        "started = time.process_time()\nlater = time.process_time()\nassert later - started < 5",
        "deadline = time.monotonic() + 10\nwhile time.monotonic() < deadline: pass",
        "def seconds():\n    return time.thread_time() - began\nassert seconds() < 40 * 2",
        "assert min(perf_counter_ns() - s for s in starts) < 5",
        "assert time.time() < 5",
        "@settings(deadline=200)\ndef test(): ...",
    ],
)
def test_a_wait_or_a_clock_is_found(source: str) -> None:
    assert len(list(offences(source))) == 1


@pytest.mark.parametrize(
    "source",
    [
        "await asyncio.sleep(0)",
        "clock.advance(5)\nassert clock() - started == 5",
        "assert clock.now < 5",
        "process.communicate(timeout=60)",
        "note = 'no time.sleep( here'",
        "@settings(deadline=None)\ndef test(): ...",
        "stamp = time.time_ns()",
    ],
)
def test_what_does_neither_is_left_alone(source: str) -> None:
    assert list(offences(source)) == []
