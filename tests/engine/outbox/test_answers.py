"""What a replica answers is either what was asked for or its failure, and nothing of it is quoted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from commonplace.engine.outbox import answers
from commonplace.engine.outbox.answers import read_candidates, read_memories
from commonplace.stores.base import Candidate
from commonplace.wire.errors import Unavailable
from commonplace.wire.record import Memory

read_names = partial(answers.read_names, store="copy")
read_tenants = partial(answers.read_tenants, store="copy")

MEMORY = Memory("0199-a", "local", "agent", "semantic", "Alice's diagnosis", created_at=1)
FOUND = Candidate(MEMORY, score=0.5)
WRONG: list[tuple[Callable[[Any], Any], Any]] = [
    *(
        (read, given)
        for read in (read_candidates, read_memories, read_names, read_tenants)
        for given in (None, 7, "Alice", {"a": 1})
    ),
    *((read, [given]) for read in (read_candidates, read_memories) for given in (None, "Alice", {"id": "a"})),
    (read_candidates, [MEMORY]),
    (read_candidates, [replace(FOUND, score="Alice")]),
    (read_candidates, [replace(FOUND, dense=True)]),
    (read_candidates, [replace(FOUND, score=b"1.5")]),
    (read_candidates, [replace(FOUND, score=10**400)]),
    (read_candidates, [replace(FOUND, keyword=np.array([0.1, 0.2]))]),
    (read_memories, [replace(MEMORY, expires_at="soon")]),
    (read_memories, [replace(MEMORY, tenant=None)]),
    (read_candidates, [Candidate(replace(MEMORY, id=None))]),  # type: ignore[arg-type]
    (read_memories, [FOUND]),
    (read_memories, [replace(MEMORY, content=None)]),  # type: ignore[arg-type]
    (read_names, ["agent", None]),
    (read_tenants, ["local", None]),
]


@pytest.mark.parametrize(("read", "given"), WRONG)
def test_what_was_not_asked_for_is_its_failure(read: Callable[[Any], Any], given: Any) -> None:
    with pytest.raises(Unavailable) as refused:
        read(given)
    assert "Alice" not in refused.value.message


def test_what_was_asked_for_is_taken() -> None:
    numbers = [FOUND, replace(FOUND, score=None), replace(FOUND, dense=np.float32(0.5), keyword=3)]
    assert read_candidates(tuple(numbers)) == numbers
    assert read_memories([MEMORY]) == [MEMORY]
    assert read_names({"agent"}) == ["agent"]
    assert read_tenants(("local",)) == ["local"]
