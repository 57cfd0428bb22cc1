"""What an import did and did not do, in counts, with the first reasons of each kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from commonplace.wire.errors import Fault

_EXAMPLES = 5  # of each reason
_MAX_REASONS = 100  # of different reasons; a file may be all wrong in ways of its own
_OTHER = "other reasons"
#: Characters of what is said of one place: a file chooses what is quoted of it. It is cut here, after secrets were
#: looked for, as half of one is not recognised; what is quoted stands last, so that nothing else is cut.
_LONGEST = 500


@dataclass(slots=True)
class Broken:
    """A place in a file that cannot be read, and why."""

    where: str  # "line 7", "conversation 3", "notes/a.md"
    reason: str

    def __str__(self) -> str:
        return f"{self.where}: {self.reason}"


class BrokenFile(Exception):
    """Nothing after this place can be read either."""

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(f"{where}: {reason}")
        self.broken = Broken(where, reason)


def with_file_name(name: str, said: str) -> str:
    """With the file's name before it, once: where a file is one document its places begin with that."""
    return said if said.startswith((f"{name}:", f"{name} ")) else f"{name}: {said}"


@dataclass(slots=True)
class Reasons:
    """How often something was left out for each reason, and what it was, for the first few."""

    hide: Callable[[str], str] = str  # what a text holds that is secret: what is left out for that must not be quoted
    counts: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)

    def add(self, reason: str, what: str) -> None:
        reason = _bounded(self.hide(reason))
        if reason not in self.counts and len(self.counts) >= _MAX_REASONS:
            reason = _OTHER
        self.counts[reason] += 1
        named = self.examples.setdefault(reason, [])
        if what and len(named) < _EXAMPLES:
            named.append(_bounded(self.hide(what)))

    def as_documents(self) -> list[dict[str, Any]]:
        return [{"reason": r, "count": n, "examples": self.examples[r]} for r, n in self.counts.most_common()]


def _bounded(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


@dataclass(slots=True)
class ImportReport:
    format: str
    dry_run: bool = False
    written: Counter[str] = field(default_factory=Counter)  # by kind of record
    known: Counter[str] = field(default_factory=Counter)  # here already, and not written again
    updated: Counter[str] = field(default_factory=Counter)  # here already, and the source says more by now
    staged: int = 0  # waiting for a reviewer
    redacted: Counter[str] = field(default_factory=Counter)  # labels of secrets that were replaced
    hide: Callable[[str], str] = str  # as in `Reasons`
    left_out: Reasons = field(init=False)
    broken: list[Broken] = field(default_factory=list)
    broken_count: int = 0
    agents: Counter[str] = field(default_factory=Counter)  # memories written, by agent

    def __post_init__(self) -> None:
        self.left_out = Reasons(self.hide)

    def add_broken(self, broken: Broken) -> None:
        self.broken_count += 1
        if len(self.broken) < _MAX_REASONS:
            self.broken.append(Broken(_bounded(self.hide(broken.where)), _bounded(self.hide(broken.reason))))

    def document(self) -> dict[str, Any]:
        return {
            "format": self.format,
            "dry_run": self.dry_run,
            "written": dict(self.written),
            "known": dict(self.known),
            "updated": dict(self.updated),
            "staged": self.staged,
            "redacted": dict(self.redacted),
            "left_out": self.left_out.as_documents(),
            "broken": [{"where": each.where, "reason": each.reason} for each in self.broken],
            "broken_count": self.broken_count,
            "agents": dict(self.agents),
        }


class ImportRefused(Fault):
    """Nothing was imported because something in the file is broken; the caller may choose to skip that."""

    code = "validation_error"

    def __init__(self, name: str, report: ImportReport) -> None:
        first = with_file_name(name, "; ".join(str(each) for each in report.broken[:_EXAMPLES]))
        more = f"; and {report.broken_count - _EXAMPLES:,} more" if report.broken_count > _EXAMPLES else ""
        super().__init__(
            f"{first}{more}; nothing was imported",
            hint="mend it, or import the rest with --skip-broken (over HTTP: skip_broken=true)",
            broken=[str(each) for each in report.broken],
        )
        self.report = report
