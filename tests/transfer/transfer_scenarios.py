"""What the tests of transfer share: who asks, an export in one piece, and one of any records."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from commonplace.testing.subject import Subject
from commonplace.transfer.export_file import ExportFile
from commonplace.wire.record import Principal

WHO = Principal()


async def exported(subject: Subject, who: Principal = WHO, **scope: Any) -> bytes:
    return b"".join([line async for line in ExportFile(subject.engine, who, **scope).lines()])


def export_of(*records: Any) -> bytes:
    """A file with these records, whatever they say, with the hash and the counts that it must have."""
    lines = [{"record": "header", "format": "commonplace-export", "version": 1, "scope": {}}, *records]
    body = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    counts = dict.fromkeys(("memory", "version", "statement", "palace"), 0)
    for record in records:
        counts[record["record"]] += 1
        counts["version"] += len(record.get("versions", ()))
    said = {"record": "manifest", "lines": len(lines), "counts": counts, "sha256": hashlib.sha256(body).hexdigest()}
    return body + json.dumps(said).encode() + b"\n"
