"""A process that is gone in the middle of something."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from commonplace.testing.subject import Subject
from commonplace.wire.errors import Unavailable


@contextmanager
def gone_after(subject: Subject, transactions: int) -> Iterator[None]:
    """Whatever is done inside fails once so many units of work were written."""
    core = subject.engine._core
    transact, left = core.transact, iter(range(transactions))

    async def dying(tenant: str, work: Any) -> Any:
        if next(left, None) is None:
            raise Unavailable("gone")
        return await transact(tenant, work)

    with pytest.MonkeyPatch.context() as broken:
        broken.setattr(core, "transact", dying)
        with pytest.raises(Unavailable):
            yield
