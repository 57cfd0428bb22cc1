"""What redaction costs, in processor time: alone for texts of three kinds, and as a share of `remember`."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from commonplace.embedders.hashing import HashingEmbedder
from commonplace.engine.engine import Engine
from commonplace.engine.redaction import Redactor, Secrets
from commonplace.engine.types import Draft
from commonplace.stores.sqlite import SqliteStore
from commonplace.wire.record import Principal

TEXTS = {
    "prose": "Alice prefers to be written to by email on weekdays, and Bob would rather be called in the afternoon "
    "because he reads nothing before lunch; both asked that the summary of the meeting be sent on Friday.",
    "links and ids": "See https://example.com/docs/page-12?ref=a9f3 and commit 3f2a9c1d77e0b1c2d3e4f5a6b7c8d9e0f1a2b3c4"
    " for memory 0198c1f2-7b3e-7d10-9a55-3f2a9c1e4b7d of the run.",
    "talk of tokens": "The token is expired and the password is required; ask Alice for the API key.",
}  # fmt: skip
_BEST_OF = 5


def microseconds(times: int = 2000) -> dict[str, float]:
    """The least of several rounds, for each text; for prose also with registered values."""
    redactor = Redactor()
    found = {name: _least(lambda text=text: redactor.text(text), times) for name, text in TEXTS.items()}  # type: ignore[misc]
    ten = Secrets((f"LABEL_{i}", f"a value that only Alice knows {i}") for i in range(10))
    found["prose, ten registered"] = _least(lambda: redactor.text(TEXTS["prose"], ten), times)
    return found


def share_of_remember(memories: int = 300) -> float:
    """How much of the time of a `remember` is the search of its record: the best round of each, in one run."""
    redactor, draft = Redactor(), Draft("agent", "semantic", TEXTS["prose"])
    whole = min(asyncio.run(_remember(memories)) for _ in range(_BEST_OF))
    return _least(lambda: redactor.redact_record(draft), memories) / 1e6 * memories / whole


async def _remember(memories: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "commonplace.db")
        engine = await Engine.open(store, HashingEmbedder())
        start = time.process_time()
        for i in range(memories):
            await engine.remember(Principal(), Draft("agent", "semantic", f"{i}: {TEXTS['prose']}"))
        spent = time.process_time() - start
        await engine.close()
        return spent


def _least(work: Callable[[], object], times: int) -> float:
    best = float("inf")
    for _ in range(_BEST_OF):
        start = time.process_time()
        for _ in range(times):
            work()
        best = min(best, (time.process_time() - start) / times)
    return best * 1e6
