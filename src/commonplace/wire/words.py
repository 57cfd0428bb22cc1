"""Words in sentences for people."""

from __future__ import annotations


def plural(count: int, thing: str) -> str:
    """`1 memory`, `2 memories`, `1,000 boxes`."""
    many = thing[:-1] + "ies" if thing.endswith("y") else f"{thing}es" if thing.endswith("x") else f"{thing}s"
    return f"{count:,} {thing if count == 1 else many}"


def shorten(text: str, most: int) -> str:
    """At most so many characters, of which the last says that there were more."""
    return text if len(text) <= most else text[: most - 1] + "…"
