"""Render the documentation to site/ and fail on a link that leads nowhere."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from markdown_it import MarkdownIt

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "site"
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
STYLE = (
    "body{max-width:52rem;margin:2rem auto;padding:0 1rem;font:16px/1.6 system-ui,sans-serif}"
    "pre{background:#f5f5f2;padding:1rem;overflow-x:auto}code{font-size:.92em}"
    "table{border-collapse:collapse}td,th{border:1px solid #ccc;padding:.3rem .6rem;text-align:left}"
)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def broken_links() -> list[str]:
    broken = []
    for page in PAGES:
        for target in LINK.findall(page.read_text("utf-8")):
            path = target.split("#")[0]
            if path and "://" not in path and not (page.parent / path).exists():
                broken.append(f"{page.relative_to(ROOT)}: {target}")
    return broken


def render() -> int:
    markdown = MarkdownIt("commonmark").enable("table")
    for page in PAGES:
        text = page.read_text("utf-8")
        title = text.splitlines()[0].lstrip("# ")
        body = re.sub(r'href="([^":]+)\.md(#[^"]*)?"', r'href="\1.html\2"', markdown.render(text))
        target = SITE / page.relative_to(ROOT).with_suffix(".html")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(
            f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
            f"<style>{STYLE}</style><body>{body}</body></html>",
            "utf-8",
        )
    return len(PAGES)


if __name__ == "__main__":
    if problems := broken_links():
        sys.exit("links that lead nowhere:\n  " + "\n  ".join(problems))
    print(f"{render()} pages in {SITE.relative_to(Path.cwd()) if SITE.is_relative_to(Path.cwd()) else SITE}")
