"""Comments that ask and replies that answer, written and read the other way round: the inverses of what is tested."""

from __future__ import annotations

import re
from dataclasses import dataclass

from commonplace.dialects.mrp.comments import REFUSALS
from commonplace.dialects.mrp.messages import Document

_HEADER = re.compile(r"@(.{1,256}?) memory_response: ?(.*)\Z")
_FOUND = re.compile(r"Found (\d{1,9}|no) relevant memor(?:y|ies)(?:, (\d{1,9}) shown)?\.(?: Partial: (.*))?\Z")
_ITEM = re.compile(r"\d{1,9}\. \[([01]\.\d{1,4})\] (.*)\Z")
_DETAIL = re.compile(r" {3}(Source|Vouch): (.*)\Z")


@dataclass(slots=True, frozen=True)
class ReplyItem:
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
    items: tuple[ReplyItem, ...] = ()
    total: int = 0

    def response(self) -> Document:
        """The MEMORY_RESPONSE that is rendered like this; each item's number is its author."""
        results = []
        for number, item in enumerate(self.items):
            claim = {"type": "insight", "content": item.title, "references": [item.source] if item.source else []}
            attestation = {"agent": str(number), "claim": claim}
            results.append({"attestation": attestation, "relevance_score": item.relevance})
        status = {"code": self.code, "message": self.message}
        return {"status": status, "results": results, "meta": {"total_matches": self.total}}

    def vouchers(self, attestation: Document) -> tuple[str, ...]:
        return self.items[int(attestation["agent"])].vouchers


def compose(agent: str, question: str, options: Document | None = None) -> str:
    """A comment that asks: the inverse of `find` for a question on one line."""
    written = [
        f"{key}:{','.join(map(_quoted, value)) if isinstance(value, list) else _quoted(str(value))}"
        for key, value in (options or {}).items()
    ]
    return "\n".join(filter(None, (f"@{agent} memory_request: {question}", " ".join(written))))


def _quoted(value: str) -> str:
    """As it is, or between the quotation marks that it does not hold."""
    if value and not re.search(r'[\s,;"“”]', value):
        return value
    return f'"{value}"' if '"' not in value else f"“{value}”"


def parse_reply(text: str) -> Reply | None:
    """The first reply in a text; None when there is none. The inverse of `render`."""
    reply: Reply | None = None
    items: list[ReplyItem] = []
    for line in text.splitlines():
        line = line.rstrip()
        if reply is None:
            reply = _parse_headline(line)
        elif found := _ITEM.match(line):
            items.append(ReplyItem(float(found[1]), found[2].strip()))
        elif items and (found := _DETAIL.match(line)):
            last, value = items[-1], found[2].strip()
            if found[1] == "Source":
                items[-1] = ReplyItem(last.relevance, last.title, value, last.vouchers)
            else:
                items[-1] = ReplyItem(last.relevance, last.title, last.source, tuple(value.split(", ")))
        elif line.strip():  # other text, or another reply
            break
    if reply is None:
        return None
    return Reply(reply.to, reply.code, reply.message, tuple(items), reply.total)


def _parse_headline(line: str) -> Reply | None:
    header = _HEADER.match(line.lstrip())
    if header is None:
        return None
    to, headline = header[1], header[2].strip()
    for code, word in REFUSALS.items():
        if headline.startswith(f"{word}: "):
            return Reply(to, code, headline.removeprefix(f"{word}: "))
    found = _FOUND.match(headline)
    if found is None:
        return Reply(to, "error", headline)
    total = 0 if found[1] == "no" else int(found[1])
    code = "partial" if found[3] is not None else "success" if total else "no_match"
    return Reply(to, code, found[3] or "", total=total)
