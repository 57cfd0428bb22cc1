"""A judge reads the few best together with the question: in the order they were ranked, as long as time allows."""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from commonplace.judges.base import Judge
from commonplace.wire.errors import Fault

#: How many are read at a time: the first few tell most, and between two rounds time is looked at.
ROUNDS = (4, 3, 3)
#: No further round is begun that would, going by those before it, end later than this.
SECONDS = 0.025

Timer = Callable[[], float]


async def read_best(
    judge: Judge,
    question: str,
    texts: Sequence[str],
    *,
    seconds: float | None = SECONDS,
    timer: Timer = time.perf_counter,
) -> tuple[list[float], str | None]:
    """A logit for each of the first texts, at least for those of one round, and what did not work as configured."""
    loop = asyncio.get_running_loop()
    try:
        logits = await loop.run_in_executor(_worker(), _read_in_rounds, judge, question, texts, seconds, timer)
    except Fault as fault:
        return [], f"{fault.message}; relevance is without a judge"
    return logits, judge.note


def _read_in_rounds(
    judge: Judge, question: str, texts: Sequence[str], seconds: float | None, timer: Timer
) -> list[float]:
    # One that reads all texts in one go, as a language model does, would be asked several times for nothing.
    if seconds is None or not getattr(judge, "reads_pairs", False):
        return list(judge.judge(question, texts))
    began = timer()
    logits: list[float] = []
    for size in ROUNDS:
        batch = texts[len(logits) : len(logits) + size]
        spent = timer() - began
        if not batch or (logits and spent * (1 + len(batch) / len(logits)) > seconds):
            break
        logits += judge.judge(question, batch)
    return logits


@functools.cache
def _worker() -> ThreadPoolExecutor:
    # One thread: a judge uses every core by itself, and threads that wait their turn would be taken from others.
    return ThreadPoolExecutor(1, thread_name_prefix="judge")
