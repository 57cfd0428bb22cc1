"""The store's embedder under the address and in the words of the OpenAI API, for products that only know those."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from commonplace.serve.auth import BORROWER
from commonplace.serve.errors import error_reply
from commonplace.serve.routes import Call, Protocol, Reply, Route
from commonplace.wire.errors import ValidationError
from commonplace.wire.validate import check

_SCHEMA = "openai/embeddings"
_CHARS_PER_TOKEN = 4  # an estimate: clients want a number, and none of them depends on it


async def embeddings(call: Call) -> Reply:
    body: dict[str, Any] = call.body
    _no_token_ids(body)
    check(_SCHEMA, body)
    texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
    # Another process wrote what a borrower sends and may erase it, which we would not hear of.
    vectors = await call.engine.embed(call.who, texts, remember=call.who is not BORROWER)
    dimension = int(vectors.shape[1])
    if body.get("dimensions", dimension) != dimension:
        raise ValidationError(f"dimensions must be {dimension}, the embedder's own", field="dimensions")
    as_base64 = body.get("encoding_format") == "base64"
    data = [
        {"object": "embedding", "index": i, "embedding": _packed(row) if as_base64 else row.tolist()}
        for i, row in enumerate(vectors)
    ]
    info = call.engine.embedder
    tokens = sum(len(text) // _CHARS_PER_TOKEN + 1 for text in texts)
    return Reply({"object": "list", "data": data, "model": info.name if info else "none",
                  "usage": {"prompt_tokens": tokens, "total_tokens": tokens}})  # fmt: skip


def _packed(row: Any) -> str:
    return base64.b64encode(np.asarray(row, dtype="<f4").tobytes()).decode()


def _no_token_ids(body: Any) -> None:
    given = body.get("input") if isinstance(body, dict) else None
    if isinstance(given, list) and given and all(isinstance(item, (int, list)) for item in given):
        raise ValidationError("input must be text or a list of texts; token ids mean nothing to this embedder",
                              field="input")  # fmt: skip


PROTOCOL = Protocol(
    "/v1",
    (
        Route("POST", "/v1/embeddings", embeddings, "embeddings", "Vectors for texts, by the store's embedder.",
                "openai", request=_SCHEMA, response="openai/embeddings.response"),
    ),
    error_reply,
)  # fmt: skip
