"""What invented facts say and how people ask for them, in up to four languages: read from bench/data/invented."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

INVENTED = Path(__file__).parent.parent / "data" / "invented"


@dataclass(slots=True, frozen=True)
class Relation:
    of: str  # kind of subject
    value: str  # kind of value
    says: dict[str, list[str]] = field(default_factory=dict)  # language → memories
    asks: dict[str, list[str]] = field(default_factory=dict)  # language → questions


def relations() -> list[Relation]:
    text = (INVENTED / "relations.txt").read_text("utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return [_relation(block) for block in "\n".join(lines).strip().split("\n\n")]


def _relation(block: str) -> Relation:
    head, *lines = block.splitlines()
    found = Relation(*head.split())
    for line in lines:
        language, mark, rest = line[:2], line[2], line[3:]
        patterns = [each.strip() for each in rest.split(" | ")]
        (found.says if mark == ":" else found.asks)[language] = patterns
    return found
