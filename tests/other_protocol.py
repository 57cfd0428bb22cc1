"""A port on this machine that somebody listens at who speaks no HTTP, as that of ssh or of a database does."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

SSH = b"SSH-2.0-something\r\n"
#: What is no answer of HTTP's, or only the beginning of one.
GREETINGS = (SSH, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n{")


@contextmanager
def run_other_protocol(greeting: bytes = SSH) -> Iterator[int]:
    """Its number; whoever connects is sent the greeting once they have asked for something."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def greet() -> None:
            with suppress(OSError):  # the end of the test
                while True:
                    line, _ = listening.accept()
                    with line, suppress(OSError):
                        line.recv(65536)
                        line.sendall(greeting)
                        line.shutdown(socket.SHUT_WR)
                        while line.recv(65536):  # closed with something unread, it would take the greeting back
                            pass

        thread = threading.Thread(target=greet, daemon=True)
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()
