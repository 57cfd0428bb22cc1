"""The documentation as a site in site/: no link in it leads nowhere, and nothing in it asks another machine.

`python docs/build.py` needs what the extra `docs` names; `make docs` has it in an environment of its own.
"""

from __future__ import annotations

import logging
import posixpath
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "site"
#: Documents beside docs/, by their names on the site.
BESIDE = {"README.md": "index.md", "packages/client-ts/README.md": "typescript.md"} | {
    name: name for name in ("CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")
}
#: Folders of which the site shows what is in them: title and introduction.
LISTINGS = {
    "adr": ("Decisions", "Half a page each: what was decided, why, and what it costs."),
    "examples/memorywire": ("Examples of memorywire", "Requests and answers as they travel."),
}

_FENCE = re.compile(r"^( *)(```+|~~~+)")
_HEADING = re.compile(r"^#{1,6} +(.*?) *#*$")
_LINK = re.compile(r"(!?\[(?:[^\]\\]|\\.)*\]\()([^)\s]+)((?: \"[^\"]*\")?\))")
_ITEM = re.compile(r"^ {0,3}(?:[-*+]|\d+[.)]) ")
#: What a browser fetches by itself, and the attribute that says from where.
_FETCHED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src", "object": "data"}


def pages() -> list[Path]:
    return [*(ROOT / name for name in BESIDE), *sorted((ROOT / "docs").rglob("*.md"))]


def lines_of(text: str) -> Iterator[tuple[str, bool]]:
    """Each line, and whether it is in a block of code."""
    fence = ""
    for line in text.splitlines():
        mark = _FENCE.match(line)
        yield line, bool(fence or mark)
        if mark and not fence:
            fence = mark[2]
        elif mark and line.strip() == fence[: len(line.strip())] and len(line.strip()) >= len(fence):
            fence = ""


def slug(heading: str) -> str:
    """The anchor of a heading, as GitHub and the site make it."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    return re.sub(r"[^\w\- ]", "", plain.strip().lower()).replace(" ", "-")


def anchors(text: str) -> set[str]:
    found: list[str] = []
    for line, in_code in lines_of(text):
        if not in_code and (heading := _HEADING.match(line)):
            name = slug(heading[1])
            found.append(name if name not in found else f"{name}_{sum(each.startswith(name) for each in found)}")
    return {*found}


def links(text: str) -> list[str]:
    prose = "\n".join(re.sub(r"`[^`]*`", "", line) for line, in_code in lines_of(text) if not in_code)
    return [match[2] for match in _LINK.finditer(prose)]


def broken_links(among: list[Path] | None = None) -> list[str]:
    """Every link within the documents that leads to no file, or to no heading of it."""
    broken = []
    for page in pages() if among is None else among:
        text = page.read_text("utf-8")
        for target in links(text):
            path, _, anchor = target.partition("#")
            if urlsplit(target).scheme:
                continue
            file = (page.parent / unquote(path)) if path else page
            wrong = not file.exists() or (anchor and file.suffix == ".md" and anchor not in anchors(file.read_text()))
            if wrong:
                broken.append(f"{page.relative_to(ROOT) if page.is_relative_to(ROOT) else page}: {target}")
    return broken


def assemble(folder: Path) -> None:
    """All documents under one folder, as the site's generator takes them."""
    shutil.copytree(ROOT / "docs", folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    for page in pages():
        name = page.relative_to(ROOT).as_posix()
        (folder / _place(name)).write_text(as_site_page(page.read_text("utf-8"), name), "utf-8")
    for name, (title, intro) in LISTINGS.items():
        listed = [f"- [{_title(path)}]({path.name})" for path in sorted((folder / name).iterdir()) if path.is_file()]
        (folder / name / "index.md").write_text("\n".join([f"# {title}", "", intro, "", *listed, ""]), "utf-8")


def _title(path: Path) -> str:
    return path.read_text("utf-8").splitlines()[0].lstrip("# ") if path.suffix == ".md" else path.name


def as_site_page(text: str, name: str) -> str:
    """One document with its links as they are on the site, and with the blank lines that its generator needs."""
    made: list[str] = []
    for line, in_code in lines_of(text):
        if not in_code:
            before = made[-1] if made else ""
            begins = (_ITEM.match(line) and not _ITEM.match(before)) or (
                line.startswith("|") and not before.startswith("|")
            )
            if begins and before.strip() and not before.startswith(" "):
                made.append("")
            line = _LINK.sub(lambda link: f"{link[1]}{_on_site(link[2], name)}{link[3]}", line)
        made.append(line)
    return "\n".join(made) + "\n"


def _on_site(target: str, name: str) -> str:
    path, mark, anchor = target.partition("#")
    if not path or urlsplit(target).scheme:
        return target
    here, there = _place(name), _place(posixpath.normpath(posixpath.join(posixpath.dirname(name), path)))
    if there in LISTINGS:
        there, mark, anchor = f"{there}/index.md", "", ""
    return f"{posixpath.relpath(there, posixpath.dirname(here) or '.')}{mark}{anchor}"


def _place(name: str) -> str:
    """Where a file of the repository is on the site."""
    return BESIDE.get(name) or name.removeprefix("docs/")


def unlisted_pages(configuration: str) -> list[str]:
    """Those that the navigation does not place: a page that someone adds is found all the same, at its end."""
    navigation = configuration.split("\nnav:\n")[1].split("\nnot_in_nav:")[0]
    listed = set(re.findall(r"[\w/-]+\.md", navigation))
    names = (page.relative_to(ROOT / "docs").as_posix() for page in sorted((ROOT / "docs").rglob("*.md")))
    return [name for name in names if name not in listed and not name.startswith("adr/")]


class _Page(HTMLParser):
    """The anchors of a page, where its links lead, and what a browser would fetch for it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.ids |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        address = given.get(_FETCHED.get(tag, ""))
        if address and given.get("rel") not in ("canonical", "next", "prev"):
            self.fetched.append(address)


def problems_of(site: Path) -> list[str]:
    """What is wrong with a built site: links and files that are not there, and whatever comes from elsewhere."""
    built = {path: _Page(path.read_text("utf-8")) for path in sorted(site.rglob("*.html")) if path.name != "404.html"}
    wrong = []
    for path, page in built.items():
        for address in (*page.links, *page.fetched):
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                if address in page.fetched and parts.scheme != "data":
                    wrong.append(f"{path.relative_to(site)} fetches {address}")
                continue
            file = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            file = file / "index.html" if file.is_dir() else file
            if not file.exists() or (
                parts.fragment and file in built and unquote(parts.fragment) not in built[file].ids
            ):
                wrong.append(f"{path.relative_to(site)}: {address}")
    return wrong


def build(site: Path = SITE) -> int:
    from mkdocs.commands.build import build as build_site
    from mkdocs.config import load_config

    logging.basicConfig(level=logging.WARNING, format="%(message)s")  # what strict counts, and stops at, is told
    with tempfile.TemporaryDirectory() as folder:
        assemble(Path(folder))
        config = load_config(str(ROOT / "mkdocs.yml"), docs_dir=folder, site_dir=str(site))
        if unlisted := unlisted_pages((ROOT / "mkdocs.yml").read_text("utf-8")):
            config["nav"].append({"More": unlisted})
        build_site(config)
    return len([*site.rglob("*.html")])


if __name__ == "__main__":
    where = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else SITE
    if problems := broken_links():
        sys.exit("links that lead nowhere:\n  " + "\n  ".join(problems))
    count = build(where)
    if problems := problems_of(where):
        sys.exit("the site is not whole:\n  " + "\n  ".join(problems))
    print(f"{count} pages in {where}; open {where / 'index.html'}")
