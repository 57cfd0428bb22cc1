"""Replies to comments: a MEMORY_RESPONSE as the numbered list that people read, and such a list read again. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from commonplace.dialects.mrp.comments import MENTION
from commonplace.dialects.mrp.messages import Document

LONGEST_TITLE = 240
_HEADER = re.compile(r"@(.{1,256}?) memory_response: ?(.*)\Z")
_FOUND = re.compile(r"Found (\d{1,9}|no) relevant memor(?:y|ies)(?:, (\d{1,9}) shown)?\.(?: Partial: (.*))?\Z")
_ITEM = re.compile(r"\d{1,9}\. \[([01]\.\d{1,4})\] (.*)\Z")
_DETAIL = re.compile(r" {3}(Source|Vouch): (.*)\Z")
_REFUSALS = {"declined": "Declined", "error": "Error"}


@dataclass(slots=True, frozen=True)
class Item:
    """One memory of a reply."""

    relevance: float
    title: str
    source: str | None = None
    vouchers: tuple[str, ...] = ()


@dataclass(slots=True, frozen=True)
class Reply:
    """What a reply says; `total` counts what was found, of which `items` are shown."""

    to: str
    code: str
    message: str = ""  # why it is partial, declined or an error
    items: tuple[Item, ...] = ()
    total: int = 0


#: Who vouches for whoever wrote an attestation.
Vouchers = Callable[[Document], Sequence[str]]


def reply_of(response: Document, to: str, vouchers: Vouchers = lambda attestation: ()) -> Reply:
    """A response as a reply to whoever asked."""
    items = tuple(_item(result, vouchers) for result in response.get("results", ()))
    code = response["status"]["code"]
    message = one_line(response["status"].get("message", "")) if code in ("partial", *_REFUSALS) else ""
    total = max(int(response.get("meta", {}).get("total_matches", 0)), len(items))
    return Reply(_name(to) or "you", code, message, items, total if code in ("success", "partial") else len(items))


def refusal(to: str, message: str) -> Reply:
    """The reply to a request that could not be understood or processed."""
    return Reply(_name(to) or "you", "error", one_line(message))


def render(reply: Reply) -> str:
    lines = [f"@{reply.to} memory_response: {_headline(reply)}"]
    for number, item in enumerate(reply.items, 1):
        lines += ["", f"{number}. [{_score(item.relevance)}] {item.title}"]
        if item.source:
            lines.append(f"   Source: {item.source}")
        if item.vouchers:
            lines.append(f"   Vouch: {', '.join(item.vouchers)}")
    return "\n".join(lines)


def parse(text: str) -> Reply | None:
    """The first reply in a text; None when there is none. The inverse of `render`."""
    reply: Reply | None = None
    items: list[Item] = []
    for line in text.splitlines():
        line = line.rstrip()
        if reply is None:
            reply = _opened(line)
        elif found := _ITEM.match(line):
            items.append(Item(float(found[1]), found[2].strip()))
        elif items and (found := _DETAIL.match(line)):
            last, value = items[-1], found[2].strip()
            if found[1] == "Source":
                items[-1] = Item(last.relevance, last.title, value, last.vouchers)
            else:
                items[-1] = Item(last.relevance, last.title, last.source, tuple(value.split(", ")))
        elif line.strip():  # other text, or another reply
            break
    if reply is None:
        return None
    return Reply(reply.to, reply.code, reply.message, tuple(items), reply.total)


def one_line(text: str) -> str:
    """Without line breaks and control characters, and asking nobody anything."""
    flat = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    # A memory that reads like a request would be answered by whoever reads the reply.
    return MENTION.sub(lambda found: found[0].replace("@", "(at) ", 1), flat)


def _item(result: Document, vouchers: Vouchers) -> Item:
    attestation = result["attestation"]
    claim = attestation["claim"]
    title = one_line(claim["content"])
    if len(title) > LONGEST_TITLE:
        title = title[:LONGEST_TITLE].rsplit(" ", 1)[0].rstrip() + "…"
    references = [each for each in claim.get("references", ()) if isinstance(each, str)]
    source = one_line(references[0]) if references else None
    names = tuple(name for each in vouchers(attestation) if (name := _name(each)))
    return Item(round(result["relevance_score"], 2), title or "(empty)", source or None, names)


def _headline(reply: Reply) -> str:
    if reply.code in _REFUSALS:
        return f"{_REFUSALS[reply.code]}: {reply.message or 'no reason was given'}"
    many = "no" if not reply.total else f"{reply.total}"
    shown = f", {len(reply.items)} shown" if reply.total > len(reply.items) else ""
    partial = f" Partial: {reply.message or 'no reason was given'}" if reply.code == "partial" else ""
    return f"Found {many} relevant {'memory' if reply.total == 1 else 'memories'}{shown}.{partial}"


def _opened(line: str) -> Reply | None:
    header = _HEADER.match(line.lstrip())
    if header is None:
        return None
    to, headline = header[1], header[2].strip()
    for code, word in _REFUSALS.items():
        if headline.startswith(f"{word}: "):
            return Reply(to, code, headline.removeprefix(f"{word}: "))
    found = _FOUND.match(headline)
    if found is None:
        return Reply(to, "error", headline)
    total = 0 if found[1] == "no" else int(found[1])
    code = "partial" if found[3] is not None else "success" if total else "no_match"
    return Reply(to, code, found[3] or "", total=total)


def _score(relevance: float) -> str:
    text = f"{relevance:.2f}"
    return text[:-1] if text.endswith("0") else text


def _name(text: str) -> str:
    return " ".join(one_line(text).replace(",", " ").split())[:256].strip()
