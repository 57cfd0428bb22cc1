"""The documentation as a site: no link leads nowhere, everything is in the navigation, nothing comes from elsewhere."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from code_blocks import ROOT


def _module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"docs_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


BUILD: Any = _module(ROOT / "docs" / "build.py")
CASTS: Any = _module(ROOT / "docs" / "casts.py")
NAVIGATION = (ROOT / "mkdocs.yml").read_text("utf-8").split("\nnav:\n")[1].split("\nnot_in_nav:")[0]


def test_no_link_leads_nowhere() -> None:
    assert BUILD.broken_links() == []


@pytest.mark.parametrize(
    "text", ["[x](nowhere.md)", "[x](#nothing)", "![x](images/none.png)", "[x](other.md#nothing)", "# A\n\n[x](#b)"]
)
def test_a_link_that_leads_nowhere_is_noticed(tmp_path: Path, text: str) -> None:
    (tmp_path / "other.md").write_text("# Something\n")
    page = tmp_path / "page.md"
    page.write_text(text)
    assert len(BUILD.broken_links([page])) == 1


@pytest.mark.parametrize(
    "text",
    ["[x](other.md)", "[x](other.md#something-else-it-is)", "# A `b c`, d\n\n[x](#a-b-c-d)", "`[x](nowhere.md)`",
     "```\n[x](nowhere.md)\n```", "[x](https://example.org)", "[x](mailto:alice@example.org)"],
)  # fmt: skip
def test_a_link_that_leads_somewhere_is_accepted(tmp_path: Path, text: str) -> None:
    (tmp_path / "other.md").write_text("# Something else, it is\n")
    page = tmp_path / "page.md"
    page.write_text(text)
    assert BUILD.broken_links([page]) == []


def test_the_navigation_leads_to_pages_that_there_are() -> None:
    listed = set(re.findall(r"[\w/-]+\.md", NAVIGATION))
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert listed - pages == {"adr/index.md", *BUILD.BESIDE.values()}, "those are made while it is built"


def test_a_page_that_the_navigation_forgets_comes_last() -> None:
    configuration = (ROOT / "mkdocs.yml").read_text("utf-8")
    before = BUILD.unlisted_pages(configuration)
    assert BUILD.unlisted_pages(configuration.replace("graph.md", "gone.md")) == sorted([*before, "graph.md"])


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("README.md", "[a](docs/http.md#x) [b](CONTRIBUTING.md)", "[a](http.md#x) [b](CONTRIBUTING.md)"),
        ("README.md", "[c](docs/adr/)", "[c](adr/index.md)"),
        ("docs/stores.md", "[a](../CONTRIBUTING.md#x) [b](../README.md)", "[a](CONTRIBUTING.md#x) [b](index.md)"),
        ("docs/recipes/backup.md", "[a](../moving.md)", "[a](../moving.md)"),
        ("docs/http.md", "words\n- item\n- item\n\nwords\n| a |", "words\n\n- item\n- item\n\nwords\n\n| a |"),
        ("docs/http.md", "```\nwords\n- [a](../README.md)\n```", "```\nwords\n- [a](../README.md)\n```"),
    ],
)  # fmt: skip
def test_a_page_is_made_fit_for_the_site(name: str, text: str, expected: str) -> None:
    assert BUILD.as_site_page(text, name).strip() == expected


@pytest.mark.parametrize(
    ("page", "problems"),
    [
        ('<a href="b.html#here">x</a><img src="data:image/png;base64,x">', 0),
        ('<a href="b.html#there">x</a>', 1),
        ('<a href="c.html">x</a>', 1),
        ('<a href="https://example.org">x</a>', 0),
        ('<script src="https://example.org/x.js"></script>', 1),
        ('<link rel="stylesheet" href="//example.org/x.css">', 1),
        ('<img src="none.png">', 1),
    ],
)
def test_a_site_that_is_not_whole_is_noticed(tmp_path: Path, page: str, problems: int) -> None:
    (tmp_path / "a.html").write_text(page)
    (tmp_path / "b.html").write_text('<h1 id="here">x</h1>')
    assert len(BUILD.problems_of(tmp_path)) == problems


def test_a_site_that_was_built_is_whole() -> None:
    if not (ROOT / "site" / "index.html").exists():
        pytest.skip("THE SITE IS NOT BUILT: `make docs` builds it and checks the same")
    assert BUILD.problems_of(ROOT / "site") == []


# casts


@pytest.mark.parametrize("name", CASTS.CASTS)
def test_a_cast_shows_what_is_typed_in_it(name: str) -> None:
    header, *events = (json.loads(line) for line in (ROOT / "docs" / "casts" / f"{name}.cast").read_text().splitlines())
    assert header["version"] == 2
    shown = "".join(text for _, _, text in events)
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)
    for typed in CASTS.CASTS[name].strip().splitlines():
        assert f"$ {typed}\r\n" in plain
    assert [at for at, _, _ in events] == sorted(at for at, _, _ in events)
    assert str(Path.home()) not in shown


@pytest.mark.parametrize("name", CASTS.CASTS)
def test_a_cast_moves_by_itself_and_is_small(name: str) -> None:
    picture = (ROOT / "docs" / "casts" / f"{name}.svg").read_text("utf-8")
    assert len(picture.encode()) < 200_000
    assert "prefers-reduced-motion" in picture
    assert "<script" not in picture
    assert "\x1b" not in picture
    for typed in CASTS.CASTS[name].strip().splitlines():
        assert CASTS.html.escape(typed.split(" ")[1]) in picture


def test_colours_and_lines_of_a_terminal_become_text() -> None:
    session = CASTS.Session()
    session.show("\x1b[32m$\x1b[0m ", 0.0)
    session.show("a<b\r\n\x1b[1;36mbold\x1b[0m", 1.0)
    picture = CASTS.animation(session, "a test")
    assert '<tspan fill="#8fd694">$</tspan>' in picture
    assert "a&lt;b" in picture
    assert '<tspan fill="#7fd1d8" font-weight="bold">bold</tspan>' in picture
    assert picture.count("<text ") == 2
