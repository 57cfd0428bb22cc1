"""The store's embedder under the address and in the words of the OpenAI API, for products that only know those."""

from __future__ import annotations

import base64
from typing import Any

from commonplace.serve.routes import Call, ProtocolRoutes, Reply, Route
from commonplace.wire.errors import ValidationError
from commonplace.wire.validate import check

POSITION = 3
_REQUEST, _RESPONSE = "openai/embeddings", "openai/embeddings.response"
_CHARS_PER_TOKEN = 4  # an estimate: clients want a number, and none of them depends on it


async def embeddings(call: Call) -> Reply:
    import numpy as np  # here, because importing a protocol loads nothing heavy

    from commonplace.serve.auth import EMBEDDER_CLIENT

    body: dict[str, Any] = call.document
    _refuse_token_ids(body)
    check(_REQUEST, body)
    texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
    # Another process wrote what it has embedded here and may erase it, which we would not hear of.
    vectors = await call.engine.embed(call.who, texts, remember=call.who is not EMBEDDER_CLIENT)
    dimension = int(vectors.shape[1])
    if body.get("dimensions", dimension) != dimension:
        raise ValidationError(f"dimensions must be {dimension}, the embedder's own", field="dimensions")
    as_base64 = body.get("encoding_format") == "base64"
    data = []
    for i, row in enumerate(vectors):
        packed = base64.b64encode(np.asarray(row, dtype="<f4").tobytes()).decode() if as_base64 else row.tolist()
        data.append({"object": "embedding", "index": i, "embedding": packed})
    info = call.engine.embedder
    tokens = sum(len(text) // _CHARS_PER_TOKEN + 1 for text in texts)
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return Reply({"object": "list", "data": data, "model": info.name if info else "none", "usage": usage})


def _refuse_token_ids(body: Any) -> None:
    given = body.get("input") if isinstance(body, dict) else None
    if isinstance(given, list) and given and all(isinstance(item, (int, list)) for item in given):
        sentence = "input must be text or a list of texts; token ids mean nothing to this embedder"
        raise ValidationError(sentence, field="input")


_SUMMARY = "Vectors for texts, by the store's embedder."
_ROUTE = Route(
    "POST",
    "/v1/embeddings",
    embeddings,
    "embeddings",
    _SUMMARY,
    "openai",
    request=_REQUEST,
    response=_RESPONSE,
    embeds=True,
)
PROTOCOLS = (ProtocolRoutes("/v1", (_ROUTE,)),)
