"""Secrets by their value: those an operator names, and those that travel with a run. Kept in memory only."""

from __future__ import annotations

import json
import os
import re
import stat
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from commonplace.wire.errors import ValidationError

LEAST = 8
_LABEL_CHARS = re.compile(r"[^A-Za-z0-9_.-]+")
_LONGEST_LABEL = 64
_LABELLED = re.compile(r"([A-Za-z_][A-Za-z0-9_.-]{0,63})[ ]?=[ ]?(\S.*)\Z")
_INVISIBLE = dict.fromkeys(map(ord, "\u200b\u200c\u200d\u2060\ufeff\u00ad"))
_BASE64 = re.compile(r"[A-Za-z0-9+/_=-]+")
NEUTRAL = "secret"


class Secrets:
    """Values with labels. A value is found as it is and as base64, hex, URL-, JSON- and HTML-escapes spell it, also
    where white space has been put into it."""

    def __init__(self, pairs: Iterable[tuple[str, str]] = ()) -> None:
        kept: dict[str, str] = {}
        for label, value in pairs:
            value = value.strip()
            if len(_squeezed(value)) < LEAST:
                raise ValidationError(
                    f"the secret {label!r:.80} is too short to look for: it must have at least {LEAST} characters",
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
                needles.setdefault(_squeezed(spelled), (self._labels[value], encoded))
        self._needles = sorted(((n, *rest) for n, rest in needles.items()), key=lambda n: -len(n[0]))

    @classmethod
    def of(cls, secrets: Mapping[str, str]) -> Secrets:
        """From {label: value}, as a run is given them."""
        return cls(secrets.items())

    def __len__(self) -> int:
        return len(self._labels)

    def may_be_in(self, text: str) -> bool:
        squeezed = _squeezed(text)
        return any(needle in squeezed for needle, _, _ in self._needles)

    def spans(self, text: str) -> Iterator[tuple[int, int, str]]:
        if not self._needles:
            return
        squeezed = _squeezed(text)
        found = [each for each in self._needles if each[0] in squeezed]
        if not found:
            return
        places = [i for i, c in enumerate(text) if not c.isspace() and ord(c) not in _INVISIBLE]
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


def _squeezed(text: str) -> str:
    joined = "".join(text.split())
    return joined if joined.isascii() else joined.translate(_INVISIBLE)


def _label(wanted: str, values: Iterable[str], lowered: str) -> str:
    """A label for a marker: it must not tell any part of a secret that is long enough to matter."""
    label = _LABEL_CHARS.sub("_", wanted).strip("_")[:_LONGEST_LABEL] or NEUTRAL
    grams = (label[i : i + LEAST].lower() for i in range(len(label) - LEAST + 1))
    return NEUTRAL if any(gram in lowered for gram in grams) or any(_in_marker(v, label) for v in values) else label


def _in_marker(value: str, label: str) -> bool:
    return any(_squeezed(value) in marker for marker in (f"<REDACTED:{label}>", f"[REDACTED:{label}]"))


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
    yield raw.hex(), False
    yield raw.hex().upper(), False
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
        if labelled and len(labelled[2]) >= LEAST:
            pairs.append((labelled[1], labelled[2]))
        elif len(line) < LEAST:
            raise ValidationError(
                f"{path}, line {number}: a secret must have at least {LEAST} characters", field="redaction.secrets_file"
            )
        else:
            pairs.append((NEUTRAL, line))
    return pairs
