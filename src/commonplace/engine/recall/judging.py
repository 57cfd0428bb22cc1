"""A judge reads the few best together with the question: in the order they were ranked, as long as time allows."""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from commonplace.judges.base import Judge
from commonplace.wire.errors import Fault

#: So many are read at a time: the first tell most, and between two rounds it is seen whether that was enough.
ROUND = 2
#: No further round is begun that would, going by those before it, end later than this.
BUDGET_SECONDS = 0.025

Timer = Callable[[], float]
Verdicts = tuple[list[float], str | None]  # a logit for each of the first texts, and what did not work as configured


async def read_all(judge: Judge, question: str, texts: Sequence[str]) -> Verdicts:
    return await _in_thread(judge, lambda: list(judge.judge(question, texts)))


async def read_best(
    judge: Judge,
    question: str,
    texts: Sequence[str],
    enough: Callable[[Sequence[float]], bool],
    *,
    seconds: float = BUDGET_SECONDS,
    timer: Timer = time.perf_counter,
) -> Verdicts:
    """At least those of one round; no more once the logits are `enough` or time is up."""
    # One that reads all texts in one go, as a language model does, would be asked several times for nothing.
    if not getattr(judge, "reads_pairs", False):
        return await read_all(judge, question, texts)
    return await _in_thread(judge, lambda: _read_in_rounds(judge, question, texts, enough, seconds, timer))


def _read_in_rounds(
    judge: Judge,
    question: str,
    texts: Sequence[str],
    enough: Callable[[Sequence[float]], bool],
    seconds: float,
    timer: Timer,
) -> list[float]:
    began = timer()
    logits: list[float] = []
    while batch := texts[len(logits) : len(logits) + ROUND]:
        spent = timer() - began
        if logits and (enough(logits) or spent * (1 + len(batch) / len(logits)) > seconds):
            break
        logits += judge.judge(question, batch)
    return logits


async def _in_thread(judge: Judge, work: Callable[[], list[float]]) -> Verdicts:
    try:
        return await asyncio.get_running_loop().run_in_executor(_worker(), work), judge.note
    except Fault as fault:
        return [], f"{fault.message}; relevance is without a judge"


@functools.cache
def _worker() -> ThreadPoolExecutor:
    # One thread: a judge uses every core by itself, and threads that wait their turn would be taken from others.
    return ThreadPoolExecutor(1, thread_name_prefix="judge")
