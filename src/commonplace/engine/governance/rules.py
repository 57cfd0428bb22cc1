"""Policy rules: what one covers, and what it does to what it covers. Pure.

A rule is a condition and an action; of several the first that covers something decides. Conditions on text see every
text of a memory, as it is and without what cannot be seen in it: neither a tag nor a zero-width space hides one.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Literal, get_args

from commonplace.stores.graph import Triple
from commonplace.wire.errors import Unavailable, ValidationError
from commonplace.wire.record import Memory, Principal, covers

Action = Literal["allow", "review", "reject", "redact"]
#: How strict an action is: of what is done to several memories at once the strictest verdict holds.
STRICTNESS: dict[str, int] = {action: n for n, action in enumerate(("allow", "redact", "review", "reject"))}
Operation = Literal["remember", "update", "forget", "merge", "statement", "attestation", "recall"]
OPERATIONS: tuple[Operation, ...] = get_args(Operation)
#: Operations by which what is remembered becomes something else.
_CHANGES = ("update", "merge", "attestation")
EXAMPLE = '{"name": "salaries", "when": {"content": "(?i)salary"}, "action": "review"}'

_PATTERNS = ("agent", "user", "kind", "source", "dialect", "principal", "type")
_MAX_PATTERN_BYTES = 1 << 20  # of memory for one compiled expression
_MARKER = re.compile(r"[<\[]REDACTED:([^>\]\s]{1,64})[>\]]")
_BIDI = re.compile("[\u202a-\u202e\u2066-\u2069]")
# The joiners are letters of some scripts and part of many emoji: only beside ASCII, or at an end, they hide something.
_ZERO_WIDTH = re.compile(
    "[\u200b\u2060-\u2064\ufeff\u180e\U000e0000-\U000e007f]|(?:(?<=[\x00-\x7f])|^)[\u200c\u200d]|[\u200c\u200d](?=[\x00-\x7f]|$)"
)
#: Letters of Cyrillic, Greek and Armenian, and Latin ones without a decomposition, by what they are taken for: those
#: that people meet. Unicode lists thousands, most of which nobody would take for anything.
LATIN_LOOKALIKES = str.maketrans(
    "АВЕЅІЈКМНОРСТУХаеѕіјорсухԁһԛԝΑΒΕΖΗΙΚΜΝΟΡΤΥΧανοριυκτχօսՏՕԼոցհıɑɡℓɩʟɢɴʀʏƖ",
    "ABESIJKMHOPCTYXaesijopcyxdhqwABEZHIKMNOPTYXavopiuktxouSOLnghiaglilgnryl",
)
INVISIBLE = {"bidi": _BIDI, "zero_width": _ZERO_WIDTH}
_TEXTS = ("content", "title", "entity_name", "source", "speaker")
_DOCUMENTS = ("tags", "metadata")
#: What others look a memory up by: it can be matched, but not replaced.
_NAMES = ("kind", "project", "session_id", "user_id", "aliases", "supersedes", "agent_id")


@dataclass(slots=True, frozen=True)
class Rule:
    name: str
    action: Action
    note: str | None = None
    operation: tuple[str, ...] = ()  # none is every write
    patterns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # by condition, each any-of
    content: Any = None  # a compiled expression
    findings: tuple[str, ...] = ()
    confidence_below: float | None = None
    privacy: Mapping[str, Any] = field(default_factory=dict)
    document: Mapping[str, Any] = field(default_factory=dict)  # as it was written


@dataclass(slots=True, frozen=True)
class Proposal:
    """What someone is about to write, take away, or be shown, in the words of rules."""

    operation: Operation
    principal: str
    agent: str
    dialect: str = ""
    user: str | None = None
    type: str = ""
    kind: str = ""
    source: str | None = None
    confidence: float = 1.0
    privacy: Mapping[str, Any] = field(default_factory=dict)
    texts: tuple[str, ...] = ()
    brings_text: bool = False  # whether text comes into memory by it, whatever the operation is called
    before: Proposal | None = None  # what it would change, as it is


@dataclass(slots=True, frozen=True)
class Verdict:
    action: Action = "allow"
    rule: Rule | None = None


# reading rules


def parse_rules(documents: Any, where: str) -> tuple[Rule, ...]:
    """Rules as a file or a request spells them; what is wrong with one is said by its key, with an example."""
    if not documents and isinstance(documents, list):
        return ()
    from commonplace.wire.validate import check  # by whoever has rules, not at every start

    try:
        check("memorywire/operations/policies", {"rules": documents})
    except ValidationError as fault:
        said = fault.message.removeprefix("rules").replace("rules[", f"{where}[")
        field = str(fault.details.get("field", "rules"))
        raise _malformed(f"{where}{said}" if said[:1] == "[" else f"{where}: {said.lstrip(' .')}", field) from None
    rules = tuple(_rule(document, f"{where}[{place}]") for place, document in enumerate(documents))
    names = [rule.name for rule in rules]
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise _malformed(f"{where}: two rules are named {twice!r}; give each its own name", "name")
    return rules


def _malformed(said: str, field: str) -> ValidationError:
    return ValidationError(f"{said}; a rule looks like {EXAMPLE}", field=field)


def _rule(document: Mapping[str, Any], at: str) -> Rule:
    when = document.get("when", {})
    operation = _listed(when.get("operation"))
    if "recall" in operation and len(operation) > 1:
        raise _malformed(f"{at}.when.operation: recall stands alone; write two rules", "operation")
    if "recall" in operation and document["action"] == "review":
        raise _malformed(
            f"{at}.action: nobody waits for a recall to be reviewed; reject withholds and redact hides", "action"
        )
    return Rule(
        document["name"],
        document["action"],
        document.get("note"),
        operation,
        {name: _listed(when[name]) for name in _PATTERNS if name in when},
        None if "content" not in when else _expression(when["content"], f"{at}.when.content"),
        _listed(when.get("findings")),
        when.get("confidence_below"),
        when.get("privacy_intent", {}),
        document,
    )


def _listed(value: Any) -> tuple[str, ...]:
    return () if value is None else (value,) if isinstance(value, str) else tuple(value)


def _expression(pattern: str, at: str) -> Any:
    """Matched in time that grows with the text alone, whatever the pattern: whoever writes a text must not be able to
    stop the server by it."""
    try:
        import re2  # by whoever has such a rule, not at every start
    except ImportError:
        raise Unavailable(f"{at} needs the package google-re2: pip install google-re2") from None
    options = re2.Options()
    options.log_errors, options.max_mem = False, _MAX_PATTERN_BYTES
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        said = error.args[0].decode() if error.args and isinstance(error.args[0], bytes) else str(error)
        raise _malformed(f"{at} is no regular expression as RE2 has them ({said})", "content") from None


# what a rule covers


def first_match(rules: Iterable[Rule], proposal: Proposal) -> Verdict:
    rule = next((rule for rule in rules if matches(rule, proposal)), None)
    return Verdict() if rule is None else Verdict(rule.action, rule)


def strictest(verdicts: Iterable[Verdict]) -> Verdict:
    return max(verdicts, key=lambda verdict: STRICTNESS[verdict.action], default=Verdict())


def matches(rule: Rule, proposal: Proposal) -> bool:
    if not rule.operation:
        return proposal.operation != "recall" and _holds(rule, proposal)
    if proposal.operation in rule.operation:
        return _holds(rule, proposal)
    # What must not be remembered must not come in by changing or joining what is harmless either: as new text, or as
    # something else that the rule looks at and that was not so before.
    if "remember" not in rule.operation or proposal.operation not in _CHANGES or not _holds(rule, proposal):
        return False
    return proposal.brings_text or (proposal.before is not None and not _holds(rule, proposal.before))


def _holds(rule: Rule, proposal: Proposal) -> bool:
    """Whether its conditions hold, all but the operation."""
    for name, patterns in rule.patterns.items():
        value = getattr(proposal, name)
        if value is None or not any(covers(pattern, value) for pattern in patterns):
            return False
    if rule.confidence_below is not None and proposal.confidence >= rule.confidence_below:
        return False
    if not all(_private(proposal.privacy, name, wanted) for name, wanted in rule.privacy.items()):
        return False
    if rule.findings and not any(covers(p, found) for p in rule.findings for found in findings(proposal.texts)):
        return False
    return rule.content is None or any(_found(rule.content, text) for text in proposal.texts)


def _private(privacy: Mapping[str, Any], name: str, wanted: Any) -> bool:
    given = privacy.get(name)
    if isinstance(wanted, bool):
        return bool(given) is wanted
    return any(covers(pattern, each) for pattern in _listed(wanted) for each in given or ())


def findings(texts: Iterable[str]) -> set[str]:
    """The labels of secrets that redaction has replaced, and which kinds of invisible characters there are."""
    found: set[str] = set()
    for text in texts:
        found.update(_MARKER.findall(text))
        if not text.isascii():
            found.update(name for name, pattern in INVISIBLE.items() if pattern.search(text))
    return found


def _found(expression: Any, text: str) -> bool:
    if _search(expression, text):
        return True
    if text.isascii():
        return False
    return any(_search(expression, plain) for plain in {visible(text), latin_lookalike(text)} if plain != text)


def _search(expression: Any, text: str) -> bool:
    return expression.search(_encodable(text)) is not None


def _encodable(text: str) -> str:
    """Half a character cannot be encoded; what stands for it is as long."""
    return text if text.isascii() else re.sub("[\ud800-\udfff]", "\ufffd", text)


def visible(text: str) -> str:
    """A text as it looks: one spelling of each character, and none that cannot be seen."""
    if text.isascii():
        return text
    return "".join(c for c in unicodedata.normalize("NFKC", text) if unicodedata.category(c) != "Cf")


def latin_lookalike(text: str) -> str:
    """A text as it looks, with Latin letters in the place of those of other scripts that nobody can tell from them."""
    return visible(text).translate(LATIN_LOOKALIKES)


# what is proposed


def memory_texts(memory: Memory) -> tuple[str, ...]:
    names = (*_TEXTS, *_DOCUMENTS, *_NAMES)
    given = [value for name in names if (value := getattr(memory, name))]
    return tuple(strings([*given, memory.provenance.get("attestation")]))


def strings(value: Any) -> Iterable[str]:
    """Every text in a document, keys too, and numbers as they are written."""
    todo = [value]
    while todo:
        part = todo.pop()
        if isinstance(part, str):
            yield part
        elif isinstance(part, (int, float)) and not isinstance(part, bool):
            yield str(part)
        elif isinstance(part, Mapping):
            todo += [*part.keys(), *part.values()]
        elif isinstance(part, (list, tuple)):
            todo += part


def of_memory(
    operation: Operation, who: Principal, memory: Memory, dialect: str = "", *, brings_text: bool = False,
    before: Proposal | None = None,
) -> Proposal:  # fmt: skip
    return Proposal(
        operation, who.name, memory.agent_id, dialect, memory.user_id, memory.type, memory.kind or memory.type,
        memory.source, memory.confidence, memory.privacy, memory_texts(memory), brings_text, before,
    )  # fmt: skip


def of_triple(operation: Operation, who: Principal, triple: Triple, dialect: str = "") -> Proposal:
    texts = tuple(filter(None, (triple.subject, triple.predicate, triple.object, triple.provenance)))
    return Proposal(
        operation, who.name, triple.agent_id, dialect, kind="statement", confidence=triple.confidence, texts=texts
    )


# what redacting makes of it


@cache
def marker(name: str) -> str:
    return f"<REDACTED:{re.sub(r'[^a-zA-Z0-9_-]+', '_', name)[:64]}>"


def redacted_text(rule: Rule, text: str) -> str:
    """A text without what the rule is about: what matches, what cannot be seen, or, where it names neither, all."""
    if not rule.content and not rule.findings:
        return marker(rule.name)
    for name, pattern in INVISIBLE.items():
        if any(covers(wanted, name) for wanted in rule.findings):
            text = pattern.sub("", text)
    if rule.content is not None and _found(rule.content, text):
        clean = str(rule.content.sub(marker(rule.name), _encodable(text)))
        # What only shows without invisible characters has no place in the text as it is.
        text = marker(rule.name) if _found(rule.content, clean) else clean
    return text


def redacted_memory(rule: Rule, memory: Memory) -> Memory | None:
    """None where what the rule is about stands in a name, or in what its author signed: neither can be replaced."""
    changes: dict[str, Any] = {}
    for name in (*_TEXTS, *_DOCUMENTS):
        value = getattr(memory, name)
        if value and (clean := _redacted(rule, value)) != value:
            changes[name] = clean
    if not rule.content and not rule.findings:
        changes = {"content": marker(rule.name), "title": None, "entity_name": None, "tags": [], "metadata": {}}
    after = replace(memory, **changes) if changes else memory
    names = [*strings([getattr(after, name) for name in _NAMES]), *strings(after.provenance.get("attestation"))]
    if rule.content is not None and any(_found(rule.content, text) for text in names):
        return None
    if changes and "attestation" in memory.provenance:
        return None
    return after


def _redacted(rule: Rule, value: Any) -> Any:
    if isinstance(value, str):
        return redacted_text(rule, value)
    if isinstance(value, dict):
        clean: dict[str, Any] = {}
        for key, each in value.items():
            kept = spelled = redacted_text(rule, key)
            while kept in clean:  # two keys lost what told them apart, and neither value may be lost
                kept = f"{spelled} ({len(clean)})"
            clean[kept] = _redacted(rule, each)
        return clean
    if isinstance(value, (list, tuple)):
        return [_redacted(rule, each) for each in value]
    if isinstance(value, (int, float)) and not isinstance(value, bool) and rule.content is not None:
        return marker(rule.name) if _found(rule.content, str(value)) else value
    return value


def redacted_triple(rule: Rule, triple: Triple) -> Triple:
    names = ("subject", "predicate", "object", "provenance")
    clean: dict[str, Any] = {name: redacted_text(rule, text) for name in names if (text := getattr(triple, name))}
    return replace(triple, **clean)
