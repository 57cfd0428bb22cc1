"""Every family in many surroundings: sentences, code, logs, YAML, env files, JSON, URLs, tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from .credentials import BY_FORM, IN_CONTEXT

SURROUNDINGS = (
    "{}",
    "The deploy key is {}, please do not share it.",
    "Bob pasted {} into the channel by mistake.",
    "SERVICE_KEY={}",
    "export SERVICE_CREDENTIAL='{}'",
    "service:\n  region: eu\n  value: {}\n  retries: 3\n",
    '{{"service": "billing", "value": "{}", "retries": 3}}',
    '{{\\"value\\": \\"{}\\"}}',
    "2026-03-01T10:22:11Z ERROR upstream refused value={} status=401",
    "client = Client('{}')  # TODO move to the vault",
    "Use `{}` for staging.",
    "```\n{}\n```",
    "| service | value |\n|---|---|\n| billing | {} |",
    "https://api.example.com/v1/things?value={}&page=2",
    "({})",
    "[{}](https://example.com)",
    'Alice said: "it\'s {}".',
    "first line\\n{}\\nlast line",
    "<value>{}</value>",
    "a,b,c\n1,{},3\n",
    "Schlüssel: {}。",
    "rotate {}; then tell Alice",
    "old\t{}\tnew",
    "curl -H 'X-Value: {}' https://api.example.com",
    "{}\n{}\n",
)
HELD_OUT = (
    "{}.",
    "“{}”",
    "…{}…",
    "key:{}",
    "*{}*",
    "**{}**",
    "~~{}~~",
    "<{}>",
    "{}/",
    "\n\n{}\n\n",
    "%20{}%20",
    "={}&",
    '\\"{}\\"',
    "a {} b {} c {}",
    "\x1b[32m{}\x1b[0m",
    "キー{}です",
    "ключ={};",
    "({{[{}]}})",
    "#{}#",
    "\u200b{}\u200b",
)


@dataclass(frozen=True, slots=True)
class Positive:
    family: str
    text: str
    secret: str


def positives(seed: int = 20260301, each: int = 12) -> Iterator[Positive]:
    """`each` texts of every family told by form, and each context of the others three times."""
    rng = Random(seed)
    for family, make in BY_FORM.items():
        for place in rng.sample(SURROUNDINGS, each):
            secret = make(rng)
            yield Positive(family, place.format(*[secret] * place.count("{}")), secret)
    for family, contexts in IN_CONTEXT.items():
        for context, make in contexts * 3:
            secret = make(rng)
            yield Positive(family, context.format(secret), secret)


def held_out(seed: int = 77) -> Iterator[Positive]:
    """Awkward surroundings that the rules were not tried on while they were written."""
    rng = Random(seed)
    for family, make in BY_FORM.items():
        for place in rng.sample(HELD_OUT, 8):
            secret = make(rng)
            yield Positive(family, place.format(*[secret] * place.count("{}")), secret)


def leaked(secret: str, text: str) -> bool:
    """Whether eight characters of it in a row are left (all of it, when it is shorter)."""
    size = min(8, len(secret))
    return any(secret[i : i + size] in text for i in range(len(secret) - size + 1))
