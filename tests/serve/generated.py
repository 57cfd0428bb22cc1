"""Requests made from a schema and a seed: every option given or left out, with values as people send them."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping, Sequence
from typing import Any

Dice = random.Random
AGENTS = ("ada", "bea", "shared", "default", "агент", "name with spaces")
TEXTS = (
    "who paid 300 euros?", "what happened in March 2024", "2024-03-05", "v1.2.3", "10.0.0.1:8420", "Alice",
    "日本語の質問",
    "naïve café", "👩‍🚀 in space", "the last 999999999 days", "99999999999 days ago", "31 February 2024",
    "²³", "٣٠٠", "x",
    'say "exactly this"', "O'Brien; DROP TABLE", "a\nb\tc", "-1", "0", "null", "%00", "../../etc/passwd", "C:\\x",
)  # fmt: skip
#: What is no text, no name or no number to keep: each is to be refused in words.
ODD_TEXTS = ("\ud800", "a\udfffb", "n" * 300, "", " ", "\x00", "x" * 70_000)
NUMBERS = (0, 1, 2, 5, 0.5, 20, 1000)
ODD_NUMBERS = (-1, 1.5, 1e308, 2**53, 2**63, 2**64, -(2**70), 10**400)
ODD_VALUES = (None, True, [], {}, [[]], {"a": {"b": 1}}, "5")
FILTERS: tuple[Any, ...] = (
    {"status": "live"}, {"status": {"$ne": "archived"}}, {"tags": {"$exists": True}}, {"tags": {"$exists": False}},
    {"tags": "x"}, {"created_at": {"$gte": 0}}, {"n": [1, "x", None]}, {"a.b": {"$contains": "é"}}, {"агент": 1},
    {"supersedes": {"$exists": True}}, {"agent_id": "ada"}, {"confidence": {"$lt": 0.5, "$gt": 0}},
)  # fmt: skip
ODD_FILTERS: tuple[Any, ...] = (
    {"\ud800": 1}, {"a": "\ud800"}, {"$or": []}, {"a": {"$x": 1}}, {"n" * 300: 1}, {"a": 2**70}, {"": 1},
)  # fmt: skip


def document(schema: Mapping[str, Any], dice: Dice, known: Sequence[str], odd: float) -> dict[str, Any]:
    """Required fields always, the others as the dice say; `odd` is how often a value is one to be refused."""
    required = set(schema.get("required", ()))
    made = {}
    for name, rules in schema.get("properties", {}).items():
        if name in required or dice.random() < 0.4:
            made[name] = value(name, rules, dice, known, odd)
    if odd and dice.random() < odd / 4:
        made[dice.choice(("unknown", "\ud800", "n" * 300))] = 1
    return made


def crossings(schema: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Every boolean and enumerated option crossed with every other: each of its values, or left out."""
    choices: list[list[dict[str, Any]]] = []
    for name, rules in schema.get("properties", {}).items():
        given = [True, False] if rules.get("type") == "boolean" else list(rules.get("enum", ()))
        if given:
            choices.append([{}, *({name: each} for each in given)])
    return [{name: each for part in parts for name, each in part.items()} for parts in itertools.product(*choices)]


def value(name: str, rules: Any, dice: Dice, known: Sequence[str], odd: float) -> Any:
    strange = dice.random() < odd
    rules = rules if isinstance(rules, Mapping) else {}
    if strange and dice.random() < 0.2:
        return dice.choice(ODD_VALUES)
    if name == "filter":
        return dice.choice(ODD_FILTERS if strange else FILTERS)
    if "enum" in rules and not strange:
        return dice.choice(rules["enum"])
    for union in ("anyOf", "oneOf"):
        if union in rules:
            return value(name, dice.choice(rules[union]), dice, known, odd)
    kind = rules.get("type")
    kind = dice.choice(kind) if isinstance(kind, list) else kind
    match kind:
        case "boolean":
            return dice.random() < 0.5
        case "integer" | "number":
            return _number(name, kind, rules, dice, strange)
        case "array":
            count = dice.choice((1, 1, 2, 3))
            return [value(name, rules.get("items"), dice, known, odd) for _ in range(count)]
        case "object":
            free = {dice.choice(TEXTS): dice.choice(TEXTS)}
            return document(rules, dice, known, odd) if "properties" in rules else free
        case "null":
            return None
    return _text(name, dice, known, strange)


def _number(name: str, kind: str, rules: Mapping[str, Any], dice: Dice, strange: bool) -> Any:
    if strange:
        return dice.choice(ODD_NUMBERS)
    low, high = rules.get("minimum", 0), rules.get("maximum", 1000)
    if name in ("expires_at", "as_of", "since", "until", "valid_from", "event_time"):
        return dice.choice((0, 1_700_000_000_000, 1_900_000_000_000, 4_102_444_800_000))
    picked = dice.choice([n for n in (*NUMBERS, low, min(high, 10**6)) if low <= n <= high] or [low])
    return int(picked) if kind == "integer" else picked


def _text(name: str, dice: Dice, known: Sequence[str], strange: bool) -> str:
    if strange:
        return dice.choice(ODD_TEXTS)
    if name in ("agent_id", "agent", "palace", "name", "memoryRef"):
        return dice.choice(AGENTS)
    if name in ("id", "ids", "canonical", "duplicates", "memory_id", "drawer_id", "supersedes") and dice.random() < 0.8:
        return dice.choice(known)
    return dice.choice(TEXTS)
