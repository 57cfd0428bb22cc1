from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from token_embedder import HashingTokens

from commonplace.embedders.base import Embedder, Encoding, Vectors
from commonplace.embedders.cache import CachedEmbedder
from commonplace.embedders.encoder import Encoder
from commonplace.embedders.hashing import HashingEmbedder
from commonplace.wire.errors import Unavailable, ValidationError


class RecordingEmbedder(HashingEmbedder):
    """The real hashing embedder, which notes its batches, can be held at a gate, and refuses some texts."""

    slice_chars = 100_000  # so that batches are bounded by their number alone

    def __init__(self) -> None:
        super().__init__(64)
        self.batches: list[list[str]] = []
        self.entered = threading.Event()
        self.gate = threading.Event()
        self.gate.set()
        self.unloads = 0
        self._inside = threading.Lock()

    def embed(self, texts: Sequence[str]) -> Vectors:
        assert self._inside.acquire(blocking=False), "called by two threads at once"
        try:
            self.batches.append(list(texts))
            self.entered.set()
            assert self.gate.wait(30)
            if any("refused" in text for text in texts):
                raise ValidationError("refused")
            if any("broken" in text for text in texts):
                raise RuntimeError("broken")
            return super().embed(texts)
        finally:
            self._inside.release()

    def unload(self) -> None:
        self.unloads += 1


@pytest.fixture
def inner() -> RecordingEmbedder:
    return RecordingEmbedder()


@pytest.fixture
def cached(inner: RecordingEmbedder):
    cached = CachedEmbedder(inner)
    yield cached
    inner.gate.set()
    cached.close()


def test_it_is_an_embedder_like_the_one_inside(cached: CachedEmbedder, inner: RecordingEmbedder) -> None:
    assert isinstance(cached, Embedder)
    assert (cached.name, cached.dimension) == (inner.name, inner.dimension)
    texts = ["tea", "coffee", "tea", ""]
    np.testing.assert_array_equal(cached.embed(texts), HashingEmbedder(64).embed(texts))
    assert cached.embed([]).shape == (0, 64)


def test_a_text_is_embedded_once(cached: CachedEmbedder, inner: RecordingEmbedder) -> None:
    first = cached.embed(["tea", "coffee", "tea"])
    again = cached.embed(["coffee", "tea"])
    assert [sorted(batch) for batch in inner.batches] == [["coffee", "tea"]]
    assert first[0].tobytes() == again[1].tobytes()


def test_changing_an_answer_does_not_change_the_cache(cached: CachedEmbedder) -> None:
    cached.embed(["tea"])[:] = 0
    assert np.linalg.norm(cached.embed(["tea"])) == pytest.approx(1)


def test_two_hundred_concurrent_callers_become_few_batches(cached: CachedEmbedder, inner: RecordingEmbedder) -> None:
    texts = [f"text number {n}" for n in range(200)]

    async def everyone() -> list[Vectors]:
        return await asyncio.gather(*(cached.embed_async([text]) for text in texts))

    answers = asyncio.run(everyone())
    np.testing.assert_array_equal(np.concatenate(answers), HashingEmbedder(64).embed(texts))
    assert sum(map(len, inner.batches)) == 200
    # How the first callers are grouped depends on when the worker wakes; behind a batch in hand it does not.
    assert max(map(len, inner.batches)) <= 64

    inner.batches.clear()
    inner.entered.clear()
    inner.gate.clear()
    with ThreadPoolExecutor(1) as pool:
        opener = pool.submit(cached.embed, ["the one being computed meanwhile"])
        assert inner.entered.wait(30)

        async def queued() -> None:
            asked = [asyncio.ensure_future(cached.embed_async([f"other {text}"])) for text in texts]
            await asyncio.sleep(0)  # lets each of them ask
            inner.gate.set()
            await asyncio.gather(*asked)

        asyncio.run(queued())
        opener.result(30)
    assert [len(batch) for batch in inner.batches] == [1, 64, 64, 64, 8]


def test_threads_without_a_loop_share_batches_and_texts(cached: CachedEmbedder, inner: RecordingEmbedder) -> None:
    inner.gate.clear()
    texts = [f"text {n % 20}" for n in range(100)]
    ready = threading.Barrier(101)

    def ask(text: str) -> Vectors:
        ready.wait(30)
        return cached.embed([text])

    with ThreadPoolExecutor(100) as pool:
        asked = [pool.submit(ask, text) for text in texts]
        ready.wait(30)
        inner.gate.set()
        answers = np.concatenate([answer.result(30) for answer in asked])
    np.testing.assert_array_equal(answers, HashingEmbedder(64).embed(texts))
    computed = [text for batch in inner.batches for text in batch]
    assert sorted(computed) == sorted(set(texts))


def test_a_long_list_goes_in_batches_of_like_length(cached: CachedEmbedder, inner: RecordingEmbedder) -> None:
    texts = ["x" * (1 + n * 37 % 150) for n in range(150)]
    np.testing.assert_array_equal(cached.embed(texts), HashingEmbedder(64).embed(texts))
    lengths = [len(text) for batch in inner.batches for text in batch]
    assert lengths == sorted(lengths)
    assert [len(batch) for batch in inner.batches] == [64, 64, 22]


def test_a_single_text_gets_in_between_the_batches_of_a_long_list(
    cached: CachedEmbedder, inner: RecordingEmbedder
) -> None:
    inner.gate.clear()
    with ThreadPoolExecutor(2) as pool:
        long_list = pool.submit(cached.embed, [f"bulk {n}" for n in range(300)])
        assert inner.entered.wait(30)

        async def query() -> None:
            asked = asyncio.ensure_future(cached.embed_async(["query"]))
            await asyncio.sleep(0)
            inner.gate.set()
            await asked

        asyncio.run(query())
        long_list.result(30)
    assert "query" in inner.batches[1]


def test_the_cache_keeps_the_most_recently_used(inner: RecordingEmbedder) -> None:
    cached = CachedEmbedder(inner, entries=3)
    cached.embed(["a", "b", "c"])
    cached.embed(["a"])
    cached.embed(["d"])
    assert len(cached) == 3
    inner.batches.clear()
    cached.embed(["a", "c", "d"])
    assert inner.batches == []
    cached.embed(["b"])
    assert inner.batches == [["b"]]
    cached.close()


def test_more_texts_than_entries_in_one_call(inner: RecordingEmbedder) -> None:
    cached = CachedEmbedder(inner, entries=3, batch=4)
    texts = [f"text {n}" for n in range(20)]
    np.testing.assert_array_equal(cached.embed(texts), HashingEmbedder(64).embed(texts))
    assert len(cached) == 3
    cached.close()


def test_erased_texts_leave_the_cache(cached: CachedEmbedder, inner: RecordingEmbedder) -> None:
    cached.embed(["tea", "coffee"])
    cached.discard(["tea", "never seen"])
    assert len(cached) == 1
    cached.clear()
    assert len(cached) == 0


def test_one_callers_refused_text_leaves_the_others_alone(cached: CachedEmbedder, inner: RecordingEmbedder) -> None:
    inner.gate.clear()
    with ThreadPoolExecutor(1) as pool:
        opener = pool.submit(cached.embed, ["first"])
        assert inner.entered.wait(30)

        async def three() -> list[Vectors | BaseException]:
            asked = [asyncio.ensure_future(cached.embed_async([t])) for t in ("tea", "refused", "coffee")]
            await asyncio.sleep(0)
            inner.gate.set()
            return await asyncio.gather(*asked, return_exceptions=True)

        tea, refused, coffee = asyncio.run(three())
        opener.result(30)
    assert isinstance(refused, ValidationError)
    np.testing.assert_array_equal(np.concatenate([tea, coffee]), HashingEmbedder(64).embed(["tea", "coffee"]))


def test_a_failure_reaches_the_caller_and_is_not_remembered(cached: CachedEmbedder, inner: RecordingEmbedder) -> None:
    for _ in range(2):
        with pytest.raises(Unavailable, match="hashing-64 failed: RuntimeError"):
            cached.embed(["broken"])
    assert len(inner.batches) == 2
    assert cached.embed(["tea"]).shape == (1, 64)


def test_a_caller_that_gives_up_does_not_cancel_the_others(cached: CachedEmbedder, inner: RecordingEmbedder) -> None:
    inner.gate.clear()

    async def two() -> Vectors:
        gives_up = asyncio.ensure_future(cached.embed_async(["tea"]))
        stays = asyncio.ensure_future(cached.embed_async(["tea"]))
        await asyncio.sleep(0)
        gives_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await gives_up
        inner.gate.set()
        return await stays

    assert asyncio.run(two()).shape == (1, 64)
    assert inner.batches == [["tea"]]


def test_it_unloads_after_ten_idle_minutes_and_loads_again(inner: RecordingEmbedder) -> None:
    now = [0.0]
    cached = CachedEmbedder(inner, clock=lambda: now[0])
    assert not cached.unload_if_idle(), "nothing was loaded yet"
    cached.embed(["tea"])
    now[0] = 599.0
    assert not cached.unload_if_idle()
    now[0] = 1200.0
    assert cached.unload_if_idle()
    assert not cached.unload_if_idle()
    assert inner.unloads == 1
    cached.embed(["tea", "coffee"])
    assert inner.batches == [["tea"], ["coffee"]]
    cached.close()


def test_closed_means_closed(inner: RecordingEmbedder) -> None:
    cached = CachedEmbedder(inner)
    cached.embed(["tea"])
    cached.close()
    assert cached.embed(["tea"]).shape == (1, 64)
    for _ in range(2):
        with pytest.raises(Unavailable, match="closed"):
            cached.embed(["coffee"])


@pytest.mark.slow
def test_the_default_embedder_answers_a_crowd_as_it_answers_one() -> None:
    encoder = Encoder()
    cached = CachedEmbedder(encoder)
    texts = [f"{'Alice and Bob talked about ' * (n % 3)}topic {n}" for n in range(40)]

    async def everyone() -> list[Vectors]:
        return await asyncio.gather(*(cached.embed_async([text]) for text in texts))

    crowd = np.concatenate(asyncio.run(everyone()))
    alone = np.concatenate([encoder.embed([text]) for text in texts])
    np.testing.assert_allclose(crowd, alone, atol=1e-5)
    cached.close()


def test_tokens_come_with_the_vector_in_one_pass_and_stay_with_it() -> None:
    inner = HashingTokens()
    cached = CachedEmbedder(inner)

    async def encode(text: str) -> Encoding:
        return (await cached.encode_async([text]))[0]

    first, again = asyncio.run(encode("the tea")), asyncio.run(encode("the tea"))
    assert again is first
    np.testing.assert_array_equal(cached.embed(["the tea"]), [first.vector])
    assert inner.passes == [["the tea"]]
    (alone,) = HashingTokens().encode(["the tea"])
    for found, wanted in zip(first, alone, strict=True):
        np.testing.assert_array_equal(found, wanted)
        assert not found.flags.writeable
    cached.close()


def test_an_embedder_without_tokens_gives_none(cached: CachedEmbedder) -> None:
    (encoded,) = asyncio.run(cached.encode_async(["tea"]))
    assert (encoded.tokens.size, encoded.weights.size, encoded.kept.size) == (0, 0, 0)


def test_what_token_vectors_take_is_bounded() -> None:
    text = "one two three four"
    size = HashingTokens().encode([text])[0].tokens.nbytes
    cached = CachedEmbedder(HashingTokens(), token_bytes=3 * size)
    for n in range(5):
        cached.embed([f"{n} two three four"])
    assert len(cached) == 3
    cached.embed(["0 two three four " * 4])  # more than there is room for, alone
    assert len(cached) == 0
    cached.embed([text])
    assert len(cached) == 1
    cached.close()


@pytest.mark.parametrize("way", ["discard", "clear"])
def test_what_was_dropped_takes_no_room(way: str) -> None:
    text = "one two three four"
    size = HashingTokens().encode([text])[0].tokens.nbytes
    cached = CachedEmbedder(HashingTokens(), token_bytes=size)
    for _ in range(3):
        cached.embed([text])
        assert len(cached) == 1
        cached.discard([text]) if way == "discard" else cached.clear()
        assert len(cached) == 0
    cached.close()
