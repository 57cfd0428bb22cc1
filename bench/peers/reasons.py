"""Why ours loses where it does. A loss without a sentence here is reported as unexplained.

A sentence is looked up by measure and system, then by measure alone, then by system alone; a measure is named without
p50, p95 or CPU where the three have one cause.
"""

from __future__ import annotations

ANY = "*"

REASONS: dict[tuple[str, str], str] = {}


def reason(measure: str, system: str) -> str | None:
    family = measure.partition(" ")[0]
    for key in ((measure, system), (family, system), (measure, ANY), (family, ANY)):
        if key in REASONS:
            return REASONS[key]
    return None
