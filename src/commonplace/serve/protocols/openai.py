"""The store's embedder under the address and in the words of the OpenAI API, for products that only know those."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from commonplace.serve.routes import Call, ProtocolRoutes, Reply, Route
from commonplace.wire.errors import ValidationError
from commonplace.wire.validate import check

if TYPE_CHECKING:
    from numpy.typing import NDArray

POSITION = 3
_REQUEST, _RESPONSE = "openai/embeddings", "openai/embeddings.response"
_CHARS_PER_TOKEN = 4  # an estimate: clients want a number, and none of them depends on it


async def embeddings(call: Call) -> Reply:
    import numpy as np  # here, because importing a protocol loads nothing heavy

    from commonplace.serve.auth import EMBEDDER_CLIENT

    body: dict[str, Any] = call.document

    def packed(array: NDArray[Any], form: str) -> str:
        return base64.b64encode(np.asarray(array, dtype=form).tobytes()).decode()

    _refuse_token_ids(body)
    check(_REQUEST, body)
    texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
    # Another process wrote what it has embedded here and may erase it, which we would not hear of.
    encoded = await call.engine.encode(call.who, texts, remember=call.who is not EMBEDDER_CLIENT)
    dimension = len(encoded[0].vector)
    if body.get("dimensions", dimension) != dimension:
        raise ValidationError(f"dimensions must be {dimension}, the embedder's own", field="dimensions")
    as_base64 = body.get("encoding_format") == "base64"
    data = []
    for i, each in enumerate(encoded):
        row: dict[str, Any] = {"object": "embedding", "index": i}
        row["embedding"] = packed(each.vector, "<f4") if as_base64 else each.vector.tolist()
        if body.get("token_vectors") and each.tokens.size:
            forms = (("tokens", "<f4"), ("weights", "<f4"), ("kept", "u1"))
            row["token_vectors"] = {name: packed(getattr(each, name), form) for name, form in forms}
        data.append(row)
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
    "OpenAI",
    request=_REQUEST,
    response=_RESPONSE,
    embeds=True,
)
PROTOCOLS = (ProtocolRoutes("/v1", (_ROUTE,)),)
