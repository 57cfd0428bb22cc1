"""The lines of a file, of which none is held that is longer than it may be: it could be all of a damaged disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import BinaryIO

_PIECE = 1 << 20


def bounded_lines(
    file: BinaryIO,
    longest: int,
    *,
    allowed: Callable[[], bool] = lambda: False,
    passed: Callable[[bytes], object] = lambda piece: None,
    piece: int = _PIECE,
) -> Iterator[bytes | None]:
    """Each line; None in the place of one of more than `longest` bytes, whose pieces `passed` is handed. `allowed` is
    asked, with the file where it is then, whether such a line is read all the same."""
    while line := file.readline(longest + 1):
        if len(line) <= longest or line.endswith(b"\n"):
            yield line
        elif allowed():
            yield line + file.readline()
        else:
            while line:
                passed(line)
                line = b"" if line.endswith(b"\n") else file.readline(piece)
            yield None
