"""A server's embedder, used by processes on the same data directory, which then need not load the model."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from commonplace.config import Config
from commonplace.embedders.base import Embedder, Encoding, TokenEmbedder, Unloadable, Vectors
from commonplace.embedders.registry import open_embedder
from commonplace.engine import Engine, Settings
from commonplace.engine_factory import open_engine
from commonplace.serve.running_server import RunningServer, connect_to, running_server

T = TypeVar("T")
Document = dict[str, Any]

#: After a server could not help it is not asked again for so long.
_RETRY_SECONDS = 30.0


class SharedEmbedder:
    """Asks a running server first, and loads its own model only without one.

    Has the name of the embedder it stands for: a server whose embedder is another is never asked.
    """

    def __init__(self, own: Embedder, folder: Path) -> None:
        self._own = own
        self._folder = folder
        self._not_before = float("-inf")
        self.name = own.name
        self.concurrent = getattr(own, "concurrent", 1)
        self.reads_speakers = getattr(own, "reads_speakers", False)

    @property
    def dimension(self) -> int:
        return self._own.dimension

    def expect_dimension(self, dimension: int) -> None:
        if expect := getattr(self._own, "expect_dimension", None):
            expect(dimension)

    def embed(self, texts: Sequence[str]) -> Vectors:
        answer = self._ask_server(texts, self._vectors)
        return self._own.embed(texts) if answer is None else answer

    def unload(self) -> None:
        if isinstance(self._own, Unloadable):
            self._own.unload()

    def _ask_server(self, texts: Sequence[str], understand: Callable[[list[Document]], T], **more: bool) -> T | None:
        """None where there is no server that can help: the own model does."""
        if texts and time.monotonic() >= self._not_before:
            server = running_server(self._folder)
            if server is not None:
                try:
                    return understand(self._request(server, texts, more))
                except Exception:  # whatever it is, the own model does not depend on it
                    self._not_before = time.monotonic() + _RETRY_SECONDS
        return None

    def _request(self, server: RunningServer, texts: Sequence[str], more: Mapping[str, bool]) -> list[Document]:
        connection = connect_to(server)
        try:
            body = json.dumps({"input": list(texts), "model": self.name, "encoding_format": "base64", **more})
            headers = {"Content-Type": "application/json", "Authorization": f"Bearer {server.token}"}
            connection.request("POST", "/v1/embeddings", body.encode("utf-8", "replace"), headers)
            response = connection.getresponse()
            answer = json.loads(response.read())
        finally:
            connection.close()
        if response.status != 200 or answer["model"] != self.name or len(answer["data"]) != len(texts):
            raise ValueError("not the embedder that was asked for")
        data: list[Document] = answer["data"]
        return data

    def _vectors(self, data: list[Document]) -> Vectors:
        return np.stack([_floats(row["embedding"], self.dimension)[0] for row in data])


class SharedTokenEmbedder(SharedEmbedder):
    """The same for an embedder with token vectors, which come in the same answer."""

    def __init__(self, own: TokenEmbedder, folder: Path) -> None:
        super().__init__(own, folder)
        self._own: TokenEmbedder = own

    @property
    def token_dimension(self) -> int:
        return self._own.token_dimension

    def encode(self, texts: Sequence[str]) -> list[Encoding]:
        answer = self._ask_server(texts, self._encodings, token_vectors=True)
        return self._own.encode(texts) if answer is None else answer

    def _encodings(self, data: list[Document]) -> list[Encoding]:
        return [self._encoding(row["embedding"], row["token_vectors"]) for row in data]

    def _encoding(self, embedding: str, more: Document) -> Encoding:
        tokens = _floats(more["tokens"], self.token_dimension)
        weights = _floats(more["weights"], len(tokens))[0]
        kept = _unpacked(more["kept"], "u1").astype(np.bool_)
        if len(kept) != len(tokens):
            raise ValueError("not the tokens of one text")
        return Encoding(_floats(embedding, self.dimension)[0], tokens, weights, kept)


def _unpacked(text: str, form: str) -> NDArray[Any]:
    import base64  # here, because without a server it is not needed

    return np.frombuffer(base64.b64decode(text), form)


def _floats(text: str, width: int) -> Vectors:
    rows: Vectors = _unpacked(text, "<f4").astype(np.float32).reshape(-1, width)
    if not len(rows) or not np.isfinite(rows).all():
        raise ValueError("not vectors of ours")
    return rows


def open_shared_embedder(config: Config) -> Embedder | None:
    """The configured embedder, which asks a server on the same data before it loads a model."""
    own = open_embedder(config.embedder)
    if own is None or not isinstance(own, Unloadable):  # without a model there is nothing to spare
        return own
    kind = SharedTokenEmbedder if hasattr(own, "encode") else SharedEmbedder
    return cast(Embedder, kind(cast(TokenEmbedder, own), config.data))


async def open_session_engine(config: Config) -> Engine:
    """With the embedder, and the address for reviews, of a server that runs on the same data: a model of its own
    would cost each session some 100 MB."""
    own = open_shared_embedder(config)
    server = running_server(config.data)
    review_url = config.review_url(server.url if server is not None and server.has_store_of(config) else "")
    settings = Settings(review_url=review_url, embeds_behind=True)
    return await open_engine(config, embedder=own, settings=settings)
