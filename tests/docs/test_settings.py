"""Every setting is on the page about configuration, or on the one that it leads to."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest
from code_blocks import ROOT

from commonplace.config import Config

PAGE = (ROOT / "docs" / "configuration.md").read_text("utf-8")
DEFAULTS = Config(Path())
TABLES: dict[str, Any] = {
    each.name: value for each in fields(Config) if is_dataclass(value := getattr(DEFAULTS, each.name))
}


@pytest.mark.parametrize(
    "name",
    [each.name for each in fields(Config) if each.name not in ("data", "notes", "uses_store_variables", *TABLES)],
)
def test_a_setting_is_on_the_page(name: str) -> None:
    assert f"`{name}`" in PAGE or f"`[[{name}]]`" in PAGE


@pytest.mark.parametrize("table", TABLES)
def test_what_is_in_a_table_is_told_there_or_where_the_page_leads(table: str) -> None:
    lines = [line for line in PAGE.splitlines() if f"[{table}]" in line]
    assert lines, table
    linked = {page for line in lines for page in re.findall(r"\]\(([\w-]+\.md)", line)}
    told = PAGE + "".join((ROOT / "docs" / page).read_text("utf-8") for page in linked)
    missing = [
        each.name for each in fields(TABLES[table]) if not re.search(rf"(`|^){each.name}(`| =)", told, re.MULTILINE)
    ]
    assert missing == []
