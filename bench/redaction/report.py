"""Samples of every fact in several surroundings, and what of each redaction leaves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from random import Random
from typing import Any

from bench.redaction.facts import Fact, facts
from commonplace.engine.redaction import Redactor

#: Where a credential that its form tells may stand, and one that only its name tells.
TOLD = {
    "prose": "Bob pasted {value} into the channel by mistake.",
    "env": "{name}={value}",
    "json": '{{"service": "billing", "value": "{value}", "retries": 3}}',
    "yaml": "service:\n  region: eu\n  value: {value}\n  retries: 3\n",
    "url": "https://api.example.com/v1/things?page=2&value={value}",
    "code": "client = Client('{value}')  # TODO move to the vault",
}
NAMED = {
    "prose": "The API key of {service} is {value}, please do not share it.",
    "env": "{name}={value}",
    "json": '{{"{name}": "{value}", "retries": 3}}',
    "yaml": "service:\n  {name}: {value}\n",
    "url": "https://api.example.com/v1/things?api_key={value}&page=2",
    "code": '{name} = "{value}"',
}
_MIN_LEFT = 8  # characters of a secret in a row that count as a leak


@dataclass(slots=True)
class Family:
    service: str
    told_by: str
    caught: int = 0
    missed: int = 0
    missed_in: tuple[str, ...] = ()


def texts(fact: Fact, rng: Random) -> Iterator[tuple[str, str, str]]:
    """(surrounding, text, secret)."""
    for where, place in (TOLD if fact.told else NAMED).items():
        secret = fact.sample(rng)
        yield where, place.format(value=secret, name=fact.name, service=fact.service), secret


def leaked(secret: str, text: str) -> bool:
    return any(secret[i : i + _MIN_LEFT] in text for i in range(len(secret) - _MIN_LEFT + 1))


def measure(samples: int, seed: int = 1) -> list[Family]:
    """`samples` of every family in every surrounding."""
    redactor = Redactor()
    found = []
    for fact in facts():
        rng = Random(f"{seed} {fact.service}")
        family = Family(fact.service, "form" if fact.told else "name")
        for _ in range(samples):
            for where, text, secret in texts(fact, rng):
                clean, labels = redactor.text(text)
                if labels and not leaked(secret, clean):
                    family.caught += 1
                else:
                    family.missed += 1
                    family.missed_in = tuple(dict.fromkeys((*family.missed_in, where)))
        found.append(family)
    return found


def table(families: list[Family]) -> str:
    width = max(len(family.service) for family in families)
    lines = [f"{'service':{width}}  told by  caught  missed"]
    for family in families:
        missed = f"  {', '.join(family.missed_in)}" if family.missed else ""
        lines.append(f"{family.service:{width}}  {family.told_by:7}  {family.caught:6}  {family.missed:6}{missed}")
    caught, missed = sum(f.caught for f in families), sum(f.missed for f in families)
    return "\n".join([*lines, f"{len(families)} services: {caught:,} caught, {missed:,} missed"])


def document(families: list[Family]) -> dict[str, Any]:
    return {
        "services": len(families),
        "caught": sum(family.caught for family in families),
        "missed": sum(family.missed for family in families),
        "families": [asdict(family) for family in families],
    }
