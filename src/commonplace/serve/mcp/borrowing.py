"""An embedder that asks a running server on the same data directory first, and loads its own model only without one."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from commonplace.embedders.base import Embedder, Unloadable, Vectors
from commonplace.serve.lending import Lender, lender

_SECONDS = 10.0
#: After a server could not help it is not asked again for so long.
_AGAIN_SECONDS = 30.0


class Borrowing:
    """Has the name of the embedder it stands for: a server whose embedder is another is never asked."""

    def __init__(self, own: Embedder, folder: Path) -> None:
        self._own = own
        self._folder = folder
        self._not_before = float("-inf")
        self.name = own.name

    @property
    def dimension(self) -> int:
        return self._own.dimension

    def embed(self, texts: Sequence[str]) -> Vectors:
        if texts and time.monotonic() >= self._not_before:
            found = lender(self._folder)
            if found is not None:
                try:
                    return self._borrow(found, texts)
                except Exception:  # whatever it is, the own model does not depend on it
                    self._not_before = time.monotonic() + _AGAIN_SECONDS
        return self._own.embed(texts)

    def unload(self) -> None:
        if isinstance(self._own, Unloadable):
            self._own.unload()

    def _borrow(self, found: Lender, texts: Sequence[str]) -> Vectors:
        import base64  # here, because without a server none of these is needed, and TLS alone takes megabytes
        import http.client
        import json
        from urllib.parse import urlsplit

        place = urlsplit(found.url)
        connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=_SECONDS)
        try:
            body = json.dumps({"input": list(texts), "model": self.name, "encoding_format": "base64"})
            headers = {"Content-Type": "application/json", "Authorization": f"Bearer {found.token}"}
            connection.request("POST", "/v1/embeddings", body.encode("utf-8", "replace"), headers)
            response = connection.getresponse()
            answer = json.loads(response.read())
        finally:
            connection.close()
        if response.status != 200 or answer["model"] != self.name or len(answer["data"]) != len(texts):
            raise ValueError("not the embedder that was asked for")
        rows = [np.frombuffer(base64.b64decode(row["embedding"]), "<f4") for row in answer["data"]]
        vectors = np.stack(rows).astype(np.float32)
        if vectors.shape[1] != self.dimension or not np.isfinite(vectors).all():
            raise ValueError("not a vector of ours")
        return vectors
