"""What people type becomes what the wire carries, and what they see is safe and short."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from commonplace.cli.support import output, values
from commonplace.cli.support.tables import memories_table
from commonplace.wire.errors import ValidationError

NOW = 1_772_323_200_000  # 2026-03-01T00:00Z
DAY = 86_400_000


@pytest.mark.parametrize(
    ("text", "direction", "expected"),
    [
        ("2026-03-01", 1, NOW),
        ("20260301", 1, NOW),
        ("2026-03-01T01:00", 1, NOW + 3_600_000),
        ("2026-03-01T01:00Z", 1, NOW + 3_600_000),
        ("2026-03-01T01:00+01:00", -1, NOW),
        (str(NOW), -1, NOW),
        ("30d", 1, NOW + 30 * DAY),
        ("12h", -1, NOW - DAY // 2),
        ("45m", 1, NOW + 2_700_000),
        ("10s", -1, NOW - 10_000),
        ("2w", 1, NOW + 14 * DAY),
    ],
)
def test_times(text: str, direction: int, expected: int) -> None:
    assert values.instant(text, "--expires", NOW, direction=direction) == expected


@pytest.mark.parametrize("text", ["tomorrow", "", "2026-13-01", "30y", "-3d", "1772323200"])
def test_what_is_no_time_is_refused_with_what_would_be(text: str) -> None:
    with pytest.raises(ValidationError, match=r"--as-of.*30d"):
        values.instant(text, "--as-of", NOW, direction=-1)


@given(st.integers(min_value=100_000_000_000, max_value=4_000_000_000_000))
def test_a_time_as_shown_can_be_given_back(ms: int) -> None:
    assert values.instant(output.moment(ms), "--as-of", NOW, direction=-1) == ms
    assert values.instant(str(ms), "--as-of", NOW, direction=-1) == ms


@pytest.mark.parametrize(
    ("document", "simple", "expected"),
    [
        (None, None, None),
        (None, ["project=atlas"], {"project": "atlas"}),
        (None, ["stars=5", 'code="5"'], {"stars": 5, "code": "5"}),
        (None, ["stars>=3", "stars<5"], {"stars": {"$gte": 3, "$lt": 5}}),
        (None, ["done!=true"], {"done": {"$ne": True}}),
        (None, ["url=a=b"], {"url": "a=b"}),
        (None, ["empty="], {"empty": ""}),
        (None, ["n=NaN"], {"n": "NaN"}),
        ('{"a": [1, 2]}', ["b=x"], {"a": [1, 2], "b": "x"}),
    ],
)
def test_conditions(document: str | None, simple: list[str] | None, expected: Any) -> None:
    assert values.conditions(document, simple) == expected


@pytest.mark.parametrize(
    ("document", "simple", "says"),
    [
        ("{", None, "--filter is not valid JSON"),
        ("[1]", None, "must be a JSON object"),
        (None, ["project"], "FIELD=VALUE"),
        (None, ["=x"], "FIELD=VALUE"),
        (None, ["a=1", "a=2"], "already a condition on 'a'"),
        ('{"a": 1}', ["a>2"], "already a condition on 'a'"),
    ],
)
def test_conditions_refused(document: str | None, simple: list[str] | None, says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        values.conditions(document, simple)


@pytest.mark.parametrize("field", ["created_at", "updated_at", "expires_at", "event_time", "last_recalled_at"])
@pytest.mark.parametrize("operator", ["=", "!=", ">", ">=", "<", "<="])
def test_a_condition_on_a_time_takes_what_people_write(
    field: str, operator: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(values, "system_clock", lambda: NOW)

    def operand(text: str) -> Any:
        found = values.conditions(None, [f"{field}{operator}{text}"])
        assert found is not None
        return found[field] if operator == "=" else next(iter(found[field].values()))

    for text in ("2026-03-01", "2026-03-01T00:00Z", "20260301", '"2026-03-01"', str(NOW)):
        assert operand(text) == NOW, text
    assert operand("1d") == (NOW + DAY if field == "expires_at" else NOW - DAY)
    assert operand("0") == 0
    assert operand("null") is None
    for text in ("soon", "1772323200"):
        with pytest.raises(ValidationError, match=f"--where {field}"):
            operand(text)


def test_metadata_joins_all_its_sources() -> None:
    found = values.metadata(["n=3", "name=Alice", "b=x=y"], '{"n": 1, "kept": true}', tags=["a"], title=None)
    assert found == {"n": 3, "kept": True, "name": "Alice", "b": "x=y", "tags": ["a"]}


def test_text_cannot_command_the_terminal() -> None:
    assert output.visible("\x1b[31mred\x07\x9b1m\ttab\nline") == "\ufffd[31mred\ufffd\ufffd1m\ttab\nline"
    assert output.flat("a\n\tb  c") == "a b c"


@pytest.mark.parametrize(("count", "expected"), [(0, "0 B"), (999, "999 B"), (23_400_000, "23.4 MB")])
def test_sizes(count: int, expected: str) -> None:
    assert output.size(count) == expected


@pytest.mark.parametrize("handler", ["strict", "surrogateescape"])
def test_bytes_on_stdin_that_are_no_text_are_refused(handler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"caf\xe9"), "utf-8", handler))
    with pytest.raises(ValidationError, match="stdin is not UTF-8 text"):
        values.text_file(Path("-"), "-")


def test_a_table_marks_what_is_archived() -> None:
    memory = {"id": "m", "type": "semantic", "content": "x", "created_at": NOW, "status": "archived"}
    rows = list(memories_table([memory, {**memory, "status": "live"}]).rows)
    assert [row[1] for row in rows] == ["semantic (archived)", "semantic"]
