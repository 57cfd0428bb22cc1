"""Text to spans of secrets, and text without them. Cheap where there is nothing: literals are looked for first."""

from __future__ import annotations

import re
from collections.abc import Callable
from operator import add

from commonplace.engine.redaction.phrase_rules import (
    CARD_HINT,
    COOKIE_FIELD,
    LOGIN_FIELD,
    PASSWORD_FIELD,
    PHRASES,
    SECRET_FIELD,
    SEED_FIELD,
    SEED_VALUE,
    SESSION_VALUE,
    cards,
    private_keys,
)
from commonplace.engine.redaction.prose_rules import is_seed_phrase
from commonplace.engine.redaction.registered_secrets import NEUTRAL, Secrets
from commonplace.engine.redaction.rule import (
    TOKEN_CHARS,
    TOKEN_RUN,
    LeadIndex,
    Rule,
    is_basic_login,
    is_passphrase,
    is_password,
    is_quoted_password,
    is_random,
    lower,
)
from commonplace.engine.redaction.token_rules import TOKENS
from commonplace.wire.errors import SecretLeakage

Span = tuple[int, int, str]

CARD, PRIVATE_KEY = "card_number", "private_key"
FAMILIES = tuple(dict.fromkeys([*(rule.label for rule in (*TOKENS, *PHRASES)), PRIVATE_KEY, CARD]))
_KNOWN = frozenset([*FAMILIES, NEUTRAL])
_MARKER = re.compile(r"(?:<REDACTED:([A-Za-z0-9_.-]{1,64})>|\[REDACTED:([A-Za-z0-9_.-]{1,64})\])")
_GOES_ON = re.compile(r"[^\W]|[!#$%^*+~-]")  # behind a marker: more of the value, not of the sentence
_RUNS = re.compile(rf"[{TOKEN_CHARS}]{{{TOKEN_RUN},}}+")
_BEGIN = "-----BEGIN"
_SEEN_IN_NAMES = frozenset({"url_password"})  # a repository's address names a project
_COPULA = re.compile(r"(?i)(?:\A|[ _-])(?:is|was|equals|are|has value|value|=|:)\Z")
_LAST = 1000
_ROUNDS = 12
_PUNCTUATION = " \t\r\n.,;:!?\"'`()[]{}<>"
_WORTH = 4  # characters beside a marker that are worth replacing with it


def _by_trigger(rules: tuple[Rule, ...]) -> dict[str, tuple[Rule, ...]]:
    triggers: dict[str, list[Rule]] = {}
    for rule in rules:
        for trigger in rule.triggers:
            triggers.setdefault(trigger, []).append(rule)
    return {trigger: tuple(held) for trigger, held in triggers.items()}


def _by_pair(triggers: dict[str, tuple[Rule, ...]]) -> dict[str, tuple[str, ...]]:
    """Triggers under their first two characters, so that few of the many are looked for."""
    pairs: dict[str, list[str]] = {}
    for trigger in triggers:
        pairs.setdefault(trigger[:2], []).append(trigger)
    return {pair: tuple(held) for pair, held in pairs.items()}


_TOKEN_RULES, _WORD_RULES = _by_trigger(TOKENS), _by_trigger(PHRASES)
_TOKEN_PAIRS = _by_pair(_TOKEN_RULES)
_PAIRS = frozenset(_TOKEN_PAIRS)
_ASCII_WORDS = tuple(word for word in _WORD_RULES if word.isascii())
_WORDS = tuple(_WORD_RULES)
_ORDER = {rule: i for i, rule in enumerate((*TOKENS, *PHRASES))}


def candidates(text: str, lowered: str) -> list[Rule]:
    """The rules worth trying on this text; none for nearly everything people write."""
    found: set[Rule] = set()
    if runs := _RUNS.findall(text):
        joined = "\n".join(runs)
        for pair in _PAIRS.intersection(map(add, joined, joined[1:])):
            for trigger in _TOKEN_PAIRS[pair]:
                if trigger in joined:
                    found.update(_TOKEN_RULES[trigger])
    for word in _ASCII_WORDS if text.isascii() else _WORDS:
        if word in lowered:
            found.update(_WORD_RULES[word])
    return sorted(found, key=_ORDER.__getitem__) if found else []


def spans(text: str, registered: tuple[Secrets, ...] = (), rules: bool = True) -> list[Span]:
    """Where secrets are, in order, none overlapping. What a marker of ours already replaced is no secret."""
    found: list[tuple[int, int, int, str]] = []
    for secrets in registered:
        found += [(start, end, start - end, label) for start, end, label in secrets.spans(text)]
    marked = "REDACTED:" in text
    if rules:
        found += _by_rules(text)
        if marked:
            bare, places = _without_markers(text, _known_labels(registered))
            if bare != text:
                again = _by_rules(bare)
                found += [(places[start][0], places[end - 1][1], rank, label) for start, end, rank, label in again]
    if found and marked:
        found = _outside_markers(text, found, registered)
    return _merge_overlapping(sorted(found))


def _by_rules(text: str) -> list[tuple[int, int, int, str]]:
    lowered = lower(text)
    leads = LeadIndex(lowered)
    found: list[tuple[int, int, int, str]] = []
    for rank, rule in enumerate(candidates(text, lowered), start=1):
        found += [(start, end, rank, rule.label) for start, end in rule.spans(text, leads)]
    if _BEGIN in text:
        found += [(start, end, 0, PRIVATE_KEY) for start, end in private_keys(text)]
    if CARD_HINT.search(text):
        found += [(start, end, _LAST, CARD) for start, end in cards(text)]
    return found


def _known_labels(registered: tuple[Secrets, ...]) -> frozenset[str]:
    """Only labels of ours make a marker: otherwise a secret could be hidden in one."""
    return _KNOWN.union(*(secrets.labels for secrets in registered))


def _without_markers(text: str, known: frozenset[str]) -> tuple[str, list[tuple[int, int]]]:
    """The text as it would be if nobody had written a marker where a value begins, and where its characters were: a
    marker that more of a value follows is left out, and one that is none of ours is what stands in it."""
    pieces: list[str] = []
    places: list[tuple[int, int]] = []
    at = 0
    matches = list(_MARKER.finditer(text))
    followed = -1  # where a marker begins behind which the value goes on
    dropped = set()
    for match in reversed(matches):
        if (match[1] or match[2]) not in known or match.end() == followed or _GOES_ON.match(text, match.end()):
            followed = match.start()
            dropped.add(followed)
    for match in matches:
        if match.start() not in dropped:
            continue
        label = match[1] or match[2]
        pieces.append(text[at : match.start()])
        places += [(i, i + 1) for i in range(at, match.start())]
        at = match.end()
        if label not in known:
            pieces.append(label)
            places += [match.span()] * len(label)  # all of it goes when some of it does
    return "".join(pieces) + text[at:], places + [(i, i + 1) for i in range(at, len(text))]


def _merge_overlapping(found: list[tuple[int, int, int, str]]) -> list[Span]:
    """Overlapping ones become one, named by the longest registered value or else the rule that comes first."""
    united: list[tuple[int, int, int, str]] = []
    for start, end, rank, label in found:
        if united and start < united[-1][1]:
            first, last, held_rank, held = united[-1]
            united[-1] = (first, max(last, end), min(rank, held_rank), label if rank < held_rank else held)
        else:
            united.append((start, end, rank, label))
    return [(start, end, label) for start, end, _, label in united]


def _outside_markers(
    text: str, found: list[tuple[int, int, int, str]], registered: tuple[Secrets, ...]
) -> list[tuple[int, int, int, str]]:
    known = _known_labels(registered)
    markers = [m.span() for m in _MARKER.finditer(text) if (m[1] or m[2]) in known]
    covered = bytearray(len(text))
    for start, end in markers:
        covered[start:end] = b"\1" * (end - start)
    kept = []
    for each in found:
        start, end = each[:2]
        bare = [c for c, inside in zip(text[start:end], covered[start:end], strict=True) if not inside]
        if len(bare) == end - start or len("".join(bare).strip(_PUNCTUATION)) >= _WORTH:
            kept.append(each)
    return kept


def redact(
    text: str, marker: Callable[[str], str], registered: tuple[Secrets, ...] = (), rules: bool = True
) -> tuple[str, list[str]]:
    """The text with a marker in place of each secret, and the labels in order. Doing it again changes nothing."""
    labels: list[str] = []
    for _ in range(_ROUNDS):
        found = spans(text, registered, rules)
        if not found:
            return text, list(dict.fromkeys(labels))
        pieces, at = [], 0
        for start, end, label in found:
            pieces += [text[at:start], marker(label)]
            labels.append(label)
            at = end
        text = "".join(pieces) + text[at:]
    # Only a text made for it needs so many rounds, each uncovering what the last one's markers set free.
    raise SecretLeakage("this holds secrets within secrets that cannot be told apart; leave them out", labels=labels)


def suspicious(text: str, registered: tuple[Secrets, ...] = ()) -> bool:
    """Whether anything in it is worth a closer look."""
    return (
        bool(candidates(text, lower(text)))
        or _BEGIN in text
        or CARD_HINT.search(text) is not None
        or any(secrets.may_be_in(text) for secrets in registered)
    )


def stated_secret(subject: str, predicate: str, object: str) -> str | None:
    """As `named_secret`, for a statement: its predicate names its object, or its subject where it says what that is."""
    named = _COPULA.sub("", predicate)
    return named_secret(named if named.strip() else subject, object)


def in_name(name: str, registered: tuple[Secrets, ...] = ()) -> list[str]:
    """Labels of secrets in a name: registered ones, forms with a prefix of their own, private keys and passwords in
    addresses, but no phrases, and no numbers that only look like a card."""
    lowered = lower(name)
    leads = LeadIndex(lowered)
    found = [label for secrets in registered for _, _, label in secrets.spans(name)]
    for rule in candidates(name, lowered):
        if (not rule.lead or rule.label in _SEEN_IN_NAMES) and next(rule.spans(name, leads), None) is not None:
            found.append(rule.label)
    if _BEGIN in name and next(private_keys(name), None) is not None:
        found.append(PRIVATE_KEY)
    return list(dict.fromkeys(found))


def named_secret(name: str, value: str, registered: tuple[Secrets, ...] = ()) -> str | None:
    """The label of a value that is a secret because of the name it goes by: {"password": …}."""
    if "REDACTED:" in value:
        marker, known = _MARKER.fullmatch(value), _known_labels(registered)
        if marker is not None and (marker[1] or marker[2]) in known:
            return None
        value, _ = _without_markers(value, known)
    if PASSWORD_FIELD.search(name):
        return "password" if is_quoted_password(value) or is_password(value) or is_passphrase(value) else None
    if LOGIN_FIELD.match(name):
        return "authorization" if is_basic_login(value) else None
    if COOKIE_FIELD.match(name):
        return "session_cookie" if any(is_random(m["text"]) for m in SESSION_VALUE.finditer(value)) else None
    if SEED_FIELD.match(name):
        return "seed_phrase" if SEED_VALUE.match(value) and is_seed_phrase(value) else None
    return "secret" if SECRET_FIELD.search(name) and is_random(value) and " " not in value else None
