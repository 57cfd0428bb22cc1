"""What attackers do to a server's connections, on plain sockets; and what the server's process costs meanwhile."""

from __future__ import annotations

import select
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from server_process import ServerProcess

PATIENCE = 20.0  # seconds in which the server must have ended a connection; its own limits are one or two
_PACE = 0.02  # seconds between the bytes of a slow sender


@contextmanager
def dialled(server: ServerProcess) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as line:
        yield line


def rest(line: socket.socket) -> bytes:
    """Everything until the server closes; what a reset cuts off is lost."""
    said = bytearray()  # an answer may be of many megabytes, and bytes would be copied with each piece
    try:
        while data := line.recv(65_536):
            said += data
    except ConnectionError:
        pass
    return bytes(said)


def flood(line: socket.socket, data: bytes, most: int) -> tuple[int, bytes]:
    """Send it again and again until the server answers or closes: how many bytes it took, and what it said."""
    sent = 0
    try:
        while sent < most and not select.select([line], [], [], 0)[0]:
            sent += line.send(data)
    except ConnectionError:
        pass
    return sent, rest(line)


def dribble(line: socket.socket, data: bytes) -> tuple[int, bytes]:
    """A byte at a time, until the server answers or closes."""
    sent = 0
    try:
        for sent in range(len(data)):
            if select.select([line], [], [], _PACE)[0]:
                break
            line.send(data[sent : sent + 1])
    except ConnectionError:
        pass
    return sent, rest(line)


def status(said: bytes) -> int:
    return int(said[9:12]) if said.startswith(b"HTTP/1.1 ") else 0


def handles(server: ServerProcess) -> int:
    return len(list(Path(f"/proc/{server.process.pid}/fd").iterdir()))


def memory_mb(server: ServerProcess) -> float:
    line = next(x for x in Path(f"/proc/{server.process.pid}/status").read_text().splitlines() if x.startswith("VmRSS"))
    return int(line.split()[1]) / 1024
