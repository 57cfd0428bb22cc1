"""Ports for servers that must be told theirs: any other listens at port 0 and says which it has."""

from __future__ import annotations

import random
import socket
from contextlib import suppress

_random = random.SystemRandom()  # workers that have the same seed would all try the same ports


def free_port() -> int:
    """Below those that the system hands out, as whoever connects or listens meanwhile would be given any of them: one
    is to be free when its server starts, and when it starts again."""
    while True:
        port = _random.randrange(12_000, 32_000)
        with suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port
