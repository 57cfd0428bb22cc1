"""Secrets by their value: those an operator names, and those that travel with a run. Kept in memory only."""

from __future__ import annotations

import json
import os
import re
import stat
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

from commonplace.wire.errors import ValidationError
from commonplace.wire.record import MIN_SECRET_CHARS

_LABEL_CHARS = re.compile(r"[^A-Za-z0-9_.-]+")
_MAX_LABEL_CHARS = 64
_LABELLED = re.compile(r"([A-Za-z_][A-Za-z0-9_.-]{0,63})[ ]?=[ ]?(\S.*)\Z")
#: What nobody sees between two letters: controls, joiners, marks of direction, variation selectors, tags, fillers.
_INVISIBLE_RANGES = (
    (0x00, 0x08), (0x0E, 0x1B), (0x7F, 0x9F), (0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160),
    (0x17B4, 0x17B5), (0x180B, 0x180F), (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x2800, 0x2800),
    (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFFB), (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A), (0xE0000, 0xE007F), (0xE0100, 0xE01EF),
)  # fmt: skip
_INVISIBLE = {point: None for first, last in _INVISIBLE_RANGES for point in range(first, last + 1)}
#: One character in the escapes of JSON and of programming languages, or an HTML entity; a run of URL escapes.
_ESCAPE = (
    r"\\u\{(?P<braced>[0-9a-fA-F]{1,6})\}|\\(?:u(?P<four>[0-9a-fA-F]{4})|U(?P<eight>[0-9a-fA-F]{8})"
    r"|x(?P<two>[0-9a-fA-F]{2})|(?P<octal>[0-3][0-7]{2})|(?P<itself>[\\\"'/]))"
    r"|(?P<url>(?:%[0-9a-fA-F]{2})++)|&(?P<entity>#[0-9]{1,9};?|#[xX][0-9a-fA-F]{1,8};?|[A-Za-z][A-Za-z0-9]{1,31};)"
)
_NESTED = 3  # escapes within escapes that are looked through
_BASE64 = re.compile(r"[A-Za-z0-9+/_=-]+")
NEUTRAL = "secret"


class Secrets:
    """Values with labels. A value is found as it is and as base64, hex, URL-, JSON- and HTML-escapes spell all or some
    of its characters, also where white space or what nobody sees has been put into it."""

    def __init__(self, pairs: Iterable[tuple[str, str]] = ()) -> None:
        kept: dict[str, str] = {}
        for label, value in pairs:
            value = value.strip()
            if len(_without_white_space(value)) < MIN_SECRET_CHARS:
                raise ValidationError(
                    f"the secret {label!r:.80} is too short to look for: "
                    f"it must have at least {MIN_SECRET_CHARS} characters",
                    field="secrets",
                )
            if _in_marker(value, NEUTRAL):
                raise ValidationError(
                    f"the secret {label!r:.80} is part of the marker that would replace it", field="secrets"
                )
            kept.setdefault(value, label)
        values = sorted(kept, key=len, reverse=True)
        lowered = "\n".join(values).lower()
        self._labels = {value: _label(kept[value], values, lowered) for value in values}
        self.labels = frozenset(self._labels.values())
        needles: dict[str, tuple[str, bool]] = {}
        for value in values:
            for spelled, encoded in _spellings(value):
                needles.setdefault(_without_white_space(spelled), (self._labels[value], encoded))
        self._needles = sorted(((n, *rest) for n, rest in needles.items()), key=lambda n: -len(n[0]))
        # What is looked for where escapes have been undone: a blank may have been a plus there.
        plain = {
            _without_white_space(spelled): self._labels[value]
            for value in values
            for spelled in (value, _with_plus_signs(value))
        }
        self._plain = sorted(plain.items(), key=lambda n: -len(n[0]))

    @classmethod
    def of(cls, secrets: Mapping[str, str]) -> Secrets:
        """From {label: value}, as a run is given them."""
        return cls(secrets.items())

    def __len__(self) -> int:
        return len(self._labels)

    def may_be_in(self, text: str) -> bool:
        if not self._needles:
            return False
        squeezed = _without_white_space(text)
        return any(needle in squeezed for needle, _, _ in self._needles) or self._rounds_hidden(text) > 0

    def spans(self, text: str) -> Iterator[tuple[int, int, str]]:
        if not self._needles:
            return
        yield from self._escaped_spans(text)
        squeezed = _without_white_space(text)
        found = [each for each in self._needles if each[0] in squeezed]
        if not found:
            return
        places = [i for i, c in enumerate(text) if _visible(c)]
        runs = [match.span() for match in _BASE64.finditer(text)] if any(encoded for _, _, encoded in found) else []
        starts = [start for start, _ in runs]
        for needle, label, encoded in found:
            at = squeezed.find(needle)
            while at >= 0:
                end = at + len(needle)
                first, last = places[at], places[end - 1] + 1
                if encoded:  # the letters at its edges hold bits of it, too
                    first, last = runs[bisect_right(starts, first) - 1][0], runs[bisect_right(starts, last - 1) - 1][1]
                    end = bisect_left(places, last)  # all of the run is covered, however often it is in there
                yield first, last, label
                at = squeezed.find(needle, end)

    def _rounds_hidden(self, text: str) -> int:
        """How often escapes must be undone before a value shows; 0 when none does."""
        for rounds in range(1, _NESTED + 1):
            if not any(c in text for c in "\\%&"):
                return 0
            undone = _escape().sub(_unescaped, text)
            if undone == text:
                return 0
            text = undone
            squeezed = _without_white_space(text)
            if any(value in squeezed for value, _ in self._plain):
                return rounds
        return 0

    def _escaped_spans(self, text: str) -> Iterator[tuple[int, int, str]]:
        rounds = self._rounds_hidden(text)
        if not rounds:
            return
        places = [(i, i + 1) for i in range(len(text))]
        for _ in range(rounds):
            text, places = _unescaped_with_places(text, places)
        shown = [(c, place) for c, place in zip(text, places, strict=True) if _visible(c)]
        squeezed = "".join(c for c, _ in shown)
        for value, label in self._plain:
            at = squeezed.find(value)
            while at >= 0:
                end = at + len(value)
                yield shown[at][1][0], shown[end - 1][1][1], label
                at = squeezed.find(value, end)


def _without_white_space(text: str) -> str:
    joined = "".join(text.split())
    return joined if joined.isascii() and joined.isprintable() else joined.translate(_INVISIBLE)


@cache
def _escape() -> re.Pattern[str]:
    return re.compile(_ESCAPE)  # when first needed: every start would wait for it


def _visible(c: str) -> bool:
    return not c.isspace() and ord(c) not in _INVISIBLE


def _with_plus_signs(value: str) -> str:
    return value.replace(" ", "+")


def _unescaped(match: re.Match[str]) -> str:
    """What an escape stands for; one that stands for nothing stays."""
    kind, spelled = match.lastgroup, match[match.lastgroup or 0]
    if kind == "url":
        return bytes.fromhex(spelled.replace("%", "")).decode("utf-8", "replace")
    if kind == "entity":
        import html

        return html.unescape(match[0])
    if kind == "itself":
        return spelled
    point = int(spelled, 8 if kind == "octal" else 16)
    return chr(point) if point <= 0x10FFFF else match[0]


def _unescaped_with_places(text: str, places: list[tuple[int, int]]) -> tuple[str, list[tuple[int, int]]]:
    """The text with its escapes undone, and where each character of it was; `places` are those of `text`."""
    pieces: list[str] = []
    kept: list[tuple[int, int]] = []
    at = 0
    for match in _escape().finditer(text):
        pieces.append(text[at : match.start()])
        kept += places[at : match.start()]
        made, at = _unescaped(match), match.end()
        pieces.append(made)
        start = match.start()
        for c in made:
            # A character of a run of URL escapes has escapes of its own; any other escape is one place.
            end = min(start + 3 * _utf8_size(c), at) if match.lastgroup == "url" else at
            kept.append((places[start][0], places[max(end, start + 1) - 1][1]))
            start = end if match.lastgroup == "url" and end < at else start
    return "".join(pieces) + text[at:], kept + places[at:]


def _utf8_size(c: str) -> int:
    return 1 if c == "\ufffd" else len(c.encode("utf-8", "surrogatepass"))


def _label(wanted: str, values: Iterable[str], lowered: str) -> str:
    """A label for a marker: it must not tell any part of a secret that is long enough to matter."""
    label = _LABEL_CHARS.sub("_", wanted).strip("_")[:_MAX_LABEL_CHARS] or NEUTRAL
    grams = (label[i : i + MIN_SECRET_CHARS].lower() for i in range(len(label) - MIN_SECRET_CHARS + 1))
    return NEUTRAL if any(gram in lowered for gram in grams) or any(_in_marker(v, label) for v in values) else label


def _in_marker(value: str, label: str) -> bool:
    return any(_without_white_space(value) in marker for marker in (f"<REDACTED:{label}>", f"[REDACTED:{label}]"))


def _spellings(value: str) -> Iterator[tuple[str, bool]]:
    """The ways a value may be written, and whether its edges run into what stands around it."""
    import base64  # seldom needed, and every start would wait for them
    import html
    from urllib.parse import quote, quote_plus

    yield value, False
    for ascii_only in (True, False):
        once = json.dumps(value, ensure_ascii=ascii_only)[1:-1]
        yield once, False
        yield json.dumps(once, ensure_ascii=ascii_only)[1:-1], False
    for spelled in (quote(value, safe=""), quote_plus(value), quote(value)):
        yield spelled, False
        yield re.sub(r"%[0-9A-F]{2}", lambda m: m[0].lower(), spelled), False
    yield html.escape(value), False
    raw = value.encode("utf-8", "surrogatepass")
    for spelled in (raw.hex(), raw.hex(":"), raw.hex("-"), ",".join(f"0x{byte:02x}" for byte in raw)):
        yield spelled, False
        yield spelled.upper().replace("0X", "0x"), False
    for shift in range(3):
        coded = base64.b64encode(bytes(shift) + raw).decode("ascii")
        # Letters that also hold bits of a neighbour are unknown.
        core = coded[(0, 2, 3)[shift] : len(coded) - (0, 3, 2)[(shift + len(raw)) % 3]]
        yield core, True
        yield core.replace("+", "-").replace("/", "_"), True


def from_environment(names: Iterable[str]) -> tuple[list[tuple[str, str]], list[str]]:
    """(label, value) of each variable that is set, and the names of those that are not."""
    pairs, unset = [], []
    for name in names:
        value = os.environ.get(name, "").strip()
        if value:
            pairs.append((name, value))
        else:
            unset.append(name)
    return pairs, unset


def from_file(path: Path) -> list[tuple[str, str]]:
    """One secret a line: `label=value`, or the value alone; blank lines and lines that begin with "# " are skipped."""
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            raise ValidationError(f"secrets_file must be a file, which {path} is not", field="redaction.secrets_file")
        if os.name == "posix" and stat.S_IMODE(mode) & 0o077:
            raise ValidationError(
                f"others may read {path}, which holds secrets; run `chmod 600 {path}`", field="redaction.secrets_file"
            )
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ValidationError(
            f"cannot read the secrets in {path}: {why}; correct secrets_file in [redaction]",
            field="redaction.secrets_file",
        ) from None
    pairs = []
    for number, line in enumerate(text.splitlines(), start=1):
        line = line.strip()
        if not line or line == "#" or line.startswith("# "):
            continue
        labelled = _LABELLED.match(line)
        if labelled and len(labelled[2]) >= MIN_SECRET_CHARS:
            pairs.append((labelled[1], labelled[2]))
        elif len(line) < MIN_SECRET_CHARS:
            raise ValidationError(
                f"{path}, line {number}: a secret must have at least {MIN_SECRET_CHARS} characters",
                field="redaction.secrets_file",
            )
        else:
            pairs.append((NEUTRAL, line))
    return pairs
