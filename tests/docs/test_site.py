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
import screenshots
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
    assert BUILD.unlisted_pages(configuration) == [], "where nobody would look for it"
    assert BUILD.unlisted_pages(configuration.replace(" graph.md", " gone.md")) == ["graph.md"]


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("README.md", "[a](docs/http.md#x) [b](CONTRIBUTING.md)", "[a](http.md#x) [b](CONTRIBUTING.md)"),
        ("README.md", "[c](docs/adr/)", "[c](adr/index.md)"),
        ("docs/stores.md", "[a](../CONTRIBUTING.md#x) [b](../README.md)", "[a](CONTRIBUTING.md#x) [b](index.md)"),
        ("docs/recipes/backup.md", "[a](../moving.md)", "[a](../moving.md)"),
        ("docs/recipes/backup.md", "[a](../../README.md#x) [b](index.md)", "[a](../index.md#x) [b](index.md)"),
        ("docs/http.md", "[a](../packages/client-ts/README.md)", "[a](typescript.md)"),
        ("packages/client-ts/README.md", "[a](../../README.md) [b](../../docs/http.md)", "[a](index.md) [b](http.md)"),
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


def test_every_picture_of_the_product_is_one_that_a_command_takes() -> None:
    shown = {name for page in BUILD.pages() for name in re.findall(r"images/([\w-]+)\.png", page.read_text("utf-8"))}
    assert shown == screenshots.IN_DOCUMENTATION.keys()


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
    assert set(re.findall(r"\x1b\[[0-9;?]*([A-Za-z])", shown)) == {"m"}, "colours alone: the picture knows no others"


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


def test_a_bar_that_made_someone_wait_is_no_part_of_an_answer() -> None:
    bar = "\x1b[?25l\x1b[32m⠋\x1b[0m working ━━\r\x1b[2K\x1b[32m⠙\x1b[0m working ━━\r\n\x1b[?25h\r\x1b[1A\x1b[2K"
    assert CASTS._BAR.sub("", f"{bar}remembered x\r\n{bar}") == "remembered x\r\n"


def test_a_picture_stands_still_until_there_is_more_than_it_can_show() -> None:
    """All lines of an answer come at once: a step for each at the same instant would be a drift from the beginning."""
    session = CASTS.Session()
    session.show("$ typed\r\n", 1.0)
    session.show("line\r\n" * 40, 4.0)
    session.show("$ typed\r\nline\r\n", 2.0)
    picture = CASTS.animation(session, "a test")
    frames = picture.split("@keyframes scroll{")[1].split("}#s")[0]
    steps = [(float(at), int(by)) for at, by in re.findall(r"([\d.]+)%{transform:translateY\((-?\d+)px\)}", frames)]
    assert session.now + 3 == 10.0, "of which shares are taken"
    first, second = (-CASTS._LINE_HEIGHT * (lines - CASTS.ROWS) for lines in (41, 43))
    assert steps == [(0.0, 0), (50.0, 0), (50.2, first), (70.0, first), (70.2, second), (100.0, second)]


def test_a_line_wider_than_the_terminal_goes_on_in_the_next() -> None:
    session = CASTS.Session()
    session.show("a" * 80 + "\x1b[36m" + "b" * 20 + "\x1b[0m" + "c" * 90 + "\r\n", 1.0)
    lines = re.findall(r"<text [^>]*>(.*?)</text>", CASTS.animation(session, "a test"))
    assert [re.sub("<[^>]*>", "", line) for line in lines] == ["a" * 80 + "b" * 8, "b" * 12 + "c" * 76, "c" * 14]
