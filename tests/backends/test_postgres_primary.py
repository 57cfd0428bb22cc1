"""What the suite leaves out where PostgreSQL is the primary is there to be left out, and little."""

from __future__ import annotations

from pathlib import Path

import pytest
from postgres_primary import ELSEWHERE

TESTS = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("part", ELSEWHERE)
def test_what_is_left_out_is_there(part: str) -> None:
    file, _, name = part.partition("::") if ".py" in part else ("", "", part)
    files = [path for folder in ("engine", "dialects", "serve") for path in (TESTS / folder).rglob("test_*.py")]
    held = [path for path in files if path.as_posix().endswith(file)]
    assert any(name.partition("[")[0] in path.read_text("utf-8") for path in held), f"{part} is the name of no test"
