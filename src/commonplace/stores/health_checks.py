"""What a store's `health` looks at beside its own answer: the files and the endpoint that it would miss at the next
write. Each raises Unavailable with what to do."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from commonplace.wire.errors import Fault, Unavailable, with_public
from commonplace.wire.http_client import JsonClient

_MAX_ANSWER = 16 << 20


def require_file(path: Path) -> None:
    """An open file can be read and written when it has long been deleted: nothing but its name says so."""
    if not path.exists():
        gone = Unavailable(f"{path} is gone, and nothing is kept there any more; stop, put it back and start again")
        raise with_public(gone, "the store is gone, and nothing is kept there any more")
    if not (os.access(path, os.R_OK | os.W_OK) and os.access(path.parent, os.W_OK | os.X_OK)):
        closed = Unavailable(f"{path} or its folder may not be written any more; give back its permissions")
        raise with_public(closed, "the store may not be written any more")


def require_folder(folder: Path) -> None:
    """By writing there: permissions do not tell of a disk that is full or was mounted read-only."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"x")
            file.flush()
    except OSError as error:
        raise Unavailable(
            f"its folder {folder} cannot be written: {error.strerror}; put that right, start again and resync it"
        ) from None


class EmbeddingsEndpoint:
    """An endpoint that makes vectors as OpenAI's does, by a client of our own."""

    def __init__(self, url: str, model: str, dimension: int, timeout: float) -> None:
        self._client = JsonClient(url, None, timeout, connections=1, max_bytes=_MAX_ANSWER, is_quoted=False)
        self._asked = {"model": model, "input": ["health"]}
        self._dimension = dimension

    async def require(self) -> None:
        """One vector, of as many numbers as are kept."""
        try:
            answer = await self._client.call("POST", "/embeddings", self._asked)
        except Fault as fault:
            raise Unavailable(f"no embeddings, which it needs to write and to search: {fault.summary}") from None
        try:
            found = len(answer["data"][0]["embedding"])
        except (KeyError, IndexError, TypeError):
            raise Unavailable(
                "no embeddings: what answers at their endpoint is no such endpoint; check embeddings= in its URL"
            ) from None
        if found != self._dimension:
            raise Unavailable(
                f"its embeddings have {found} numbers, and the embedder's have {self._dimension}; start their endpoint "
                "with the embedder of this store, or resync into an empty folder"
            )

    def close(self) -> None:
        self._client.close()
