"""What the tests of transfer share: who asks, and an export in one piece."""

from __future__ import annotations

from typing import Any

from commonplace.testing.subject import Subject
from commonplace.transfer.export_file import ExportFile
from commonplace.wire.record import Principal

WHO = Principal()


async def exported(subject: Subject, who: Principal = WHO, **scope: Any) -> bytes:
    return b"".join([line async for line in ExportFile(subject.engine, who, **scope).lines()])
