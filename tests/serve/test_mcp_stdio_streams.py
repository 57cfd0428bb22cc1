"""Bytes as they arrive on stdin, cut into lines; whole messages on a stdout whose reader is slow."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress

from hypothesis import given, strategies as st
from server_process import SECONDS

from commonplace.serve.mcp.stdio_streams import LineSplitter, OutputStream

TOO_LONG = None


@given(
    st.lists(st.sampled_from([b"a", b"bc", b" ", b"\n", b"\r\n", b"a\nb", b"xxxxx"]), max_size=30), st.integers(1, 8)
)
def test_lines_are_the_same_however_they_arrive(pieces: list[bytes], limit: int) -> None:
    """What is too long is said once, wherever its end comes, and the next line is whole."""
    seen: list[bytes | None] = []
    splitter = LineSplitter(seen.append, lambda: seen.append(TOO_LONG), limit)
    for piece in pieces:
        splitter.feed(piece)
    splitter.end()
    lines = b"".join(pieces).split(b"\n")
    assert seen == [line if len(line) <= limit else TOO_LONG for line in lines if len(line) > limit or line.strip()]


def test_messages_are_whole_and_in_order_while_the_reader_is_slow() -> None:
    messages = [b"a" * 300_000 + b"\n", b"b\n", b"c" * 100_000 + b"\n", b"d\n"]

    async def run() -> bytes:
        reading, writing = os.pipe()
        os.set_blocking(reading, False)
        broken: list[bool] = []
        output = OutputStream(writing, asyncio.get_running_loop(), lambda: broken.append(True))
        for message in messages:
            output.send(message)
        assert not output.is_drained, "more than a pipe holds"
        received = b""
        async with asyncio.timeout(SECONDS):
            while not output.is_drained:
                with suppress(BlockingIOError):
                    received += os.read(reading, 4096)
                await asyncio.sleep(0)
        os.close(writing)
        while data := os.read(reading, 65_536):
            received += data
        os.close(reading)
        assert broken == []
        return received

    assert asyncio.run(run()) == b"".join(messages)
