"""Whose turn it is at the embedder, who is refused, and what is taken back: by the record of what was embedded when."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any

import pytest

from commonplace.embedders import text_queue
from commonplace.embedders.base import Vectors
from commonplace.embedders.cache import SLICE_CHARS, CachedEmbedder
from commonplace.embedders.hashing import HashingEmbedder
from commonplace.embedders.text_queue import Lane
from commonplace.wire.errors import RateLimited

FIRST = "the first, which holds the embedder until it is let go"


class Gated(HashingEmbedder):
    """Waits within its first call; records every batch."""

    def __init__(self) -> None:
        super().__init__(64)
        self.calls: list[list[str]] = []
        self.begun = threading.Event()
        self.gate = threading.Event()

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.calls.append(list(texts))
        self.begun.set()
        assert self.gate.wait(30)
        return super().embed(texts)

    @property
    def texts(self) -> list[str]:
        return [text for call in self.calls for text in call if text != FIRST]


@pytest.fixture
def gated() -> Iterator[tuple[CachedEmbedder, Gated]]:
    inner = Gated()
    cached = CachedEmbedder(inner)
    yield cached, inner
    inner.gate.set()
    cached.close()


def queued(cached: CachedEmbedder, inner: Gated, ask: Callable[[Any], Coroutine[Any, Any, None]]) -> None:
    """Run `ask` while the embedder is held; each call of what it is given has its text in the queue on return."""

    async def run() -> None:
        tasks = [asyncio.create_task(cached.embed_async([FIRST]))]
        await asyncio.to_thread(inner.begun.wait, 30)

        def submit(*texts: str, tenant: str = "", lane: Lane = Lane.WRITE) -> asyncio.Task[Vectors]:
            tasks.append(asyncio.create_task(cached.embed_async(texts, tenant=tenant, lane=lane)))
            return tasks[-1]

        await ask(submit)
        await asyncio.sleep(0)
        inner.gate.set()
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(run())


def long(text: str) -> str:
    return text + " " * SLICE_CHARS


def test_questions_go_before_what_is_written(gated: tuple[CachedEmbedder, Gated]) -> None:
    async def ask(submit: Any) -> None:
        submit("fill", lane=Lane.BACKGROUND)
        submit("write", lane=Lane.WRITE)
        submit("question", tenant="b", lane=Lane.QUERY)

    queued(*gated, ask)
    assert gated[1].calls[1:] == [["question"], ["write"], ["fill"]]


def test_each_tenant_has_its_turn(gated: tuple[CachedEmbedder, Gated]) -> None:
    async def ask(submit: Any) -> None:
        for i in range(5):
            submit(long(f"a{i}"), tenant="a")
        for i in range(2):
            submit(long(f"b{i}"), tenant="b")

    queued(*gated, ask)
    assert [text.strip() for text in gated[1].texts] == ["a0", "b0", "a1", "b1", "a2", "a3", "a4"]


def test_two_callers_of_one_tenant_take_turns(gated: tuple[CachedEmbedder, Gated]) -> None:
    async def ask(submit: Any) -> None:
        submit(*(long(f"a{i}") for i in range(4)))
        submit(long("b"))

    queued(*gated, ask)
    order = [text.strip() for text in gated[1].texts]
    assert order.index("b") <= 1


def test_a_long_document_goes_in_slices(gated: tuple[CachedEmbedder, Gated]) -> None:
    parts = [f"{i:04}" + "x" * 896 for i in range(290)]  # 262,000 characters

    async def ask(submit: Any) -> None:
        submit(*parts)

    queued(*gated, ask)
    assert sorted(gated[1].texts) == sorted(parts)
    assert {len(call) for call in gated[1].calls} == {1}


def test_a_question_waits_for_one_slice_of_a_long_document(gated: tuple[CachedEmbedder, Gated]) -> None:
    async def ask(submit: Any) -> None:
        submit(*(long(f"a{i}") for i in range(100)))
        submit("question", lane=Lane.QUERY)

    queued(*gated, ask)
    assert gated[1].texts[0] == "question"


def test_a_question_waits_for_nothing_where_two_can_embed_at_once() -> None:
    class Concurrent(HashingEmbedder):
        concurrent = 2
        gate = threading.Event()

        def embed(self, texts: Sequence[str]) -> Vectors:
            if texts[0] != "question":
                assert self.gate.wait(30)
            return super().embed(texts)

    inner = Concurrent(64)
    cached = CachedEmbedder(inner)

    async def run() -> None:
        writing = asyncio.create_task(cached.embed_async(["held"]))
        await asyncio.sleep(0)
        await cached.embed_async(["question"], lane=Lane.QUERY)
        assert not writing.done()
        inner.gate.set()
        await writing

    asyncio.run(run())
    cached.close()


def test_who_gives_up_takes_back_what_is_not_begun(gated: tuple[CachedEmbedder, Gated]) -> None:
    cached, inner = gated

    async def ask(submit: Any) -> None:
        given_up = submit("alone", "shared")
        submit("shared")
        await asyncio.sleep(0)
        given_up.cancel()
        await asyncio.wait([given_up])
        assert cached.waiting == 1

    queued(cached, inner, ask)
    assert inner.texts == ["shared"]


def test_a_question_hurries_a_text_that_was_being_written(gated: tuple[CachedEmbedder, Gated]) -> None:
    async def ask(submit: Any) -> None:
        submit(long("before"))
        submit("both")
        await asyncio.sleep(0)
        submit("both", lane=Lane.QUERY)

    queued(*gated, ask)
    assert [text.strip() for text in gated[1].texts] == ["both", "before"]


@pytest.mark.parametrize(("full", "asks", "refused"), [("a", "a", True), ("a", "b", False)])
def test_a_full_queue_refuses_before_it_accepts(
    gated: tuple[CachedEmbedder, Gated], full: str, asks: str, refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(text_queue.MAX_WAITING, Lane.QUERY, (3, 6))
    cached, inner = gated

    async def ask(submit: Any) -> None:
        for i in range(3):
            cached.check_room(full, Lane.QUERY)
            submit(f"question {i}", tenant=full, lane=Lane.QUERY)
            await asyncio.sleep(0)
        if refused:
            with pytest.raises(RateLimited) as raised:
                cached.check_room(asks, Lane.QUERY)
            assert raised.value.details["retry_after"] >= 1
        else:
            cached.check_room(asks, Lane.QUERY)

    queued(cached, inner, ask)


def test_all_tenants_together_are_bounded(gated: tuple[CachedEmbedder, Gated], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(text_queue.MAX_WAITING, Lane.QUERY, (3, 4))
    cached, inner = gated

    async def ask(submit: Any) -> None:
        for i in range(4):
            submit("question", tenant=f"tenant-{i}", lane=Lane.QUERY)
        await asyncio.sleep(0)
        with pytest.raises(RateLimited):
            cached.check_room("another", Lane.QUERY)
        cached.check_room("another", Lane.WRITE)

    queued(cached, inner, ask)


def test_tenants_share_no_vectors() -> None:
    """Whether another has embedded a text would show in the time it takes."""
    inner = Gated()
    inner.gate.set()
    cached = CachedEmbedder(inner)
    try:
        first = cached.embed(["the merger"], tenant="a")
        assert (cached.embed(["the merger"], tenant="b") == first).all()
        cached.embed(["the merger"], tenant="a")
        assert inner.texts == ["the merger"] * 2
        cached.discard(["the merger"], tenant="b")
        cached.embed(["the merger"], tenant="a")
        assert inner.texts == ["the merger"] * 2
        cached.embed(["the merger"], tenant="b")
        assert inner.texts == ["the merger"] * 3
    finally:
        cached.close()


def test_what_is_filled_in_behind_is_not_cached() -> None:
    inner = Gated()
    inner.gate.set()
    cached = CachedEmbedder(inner)
    try:
        cached.embed(["once"], lane=Lane.BACKGROUND)
        assert len(cached) == 0
    finally:
        cached.close()
