"""JSON-RPC 2.0's own error codes, and an error that carries one. It knows no method and no transport."""

from __future__ import annotations

from typing import Any

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL_ERROR = -32700, -32600, -32601, -32602, -32603
MAX_ID_CHARS = 1024  # answers repeat it, and are first searched for secrets
#: Answered with the id null: the id itself must not come back.
SECRET_ID = "id holds a secret, and answers repeat it; choose another"


class JsonRpcError(Exception):
    """A JSON-RPC error: the request could not be carried out as a request. `id` is that of the request, if known."""

    def __init__(self, code: int, message: str, data: Any = None, *, id: Any = None) -> None:
        super().__init__(message)
        self.code, self.message, self.data, self.id = code, message, data, id

    def document(self) -> dict[str, Any]:
        error: dict[str, Any] = {"code": self.code, "message": self.message}
        return error if self.data is None else error | {"data": self.data}

    def response(self, id: Any = None) -> dict[str, Any]:
        return {"jsonrpc": "2.0", "id": self.id if id is None else id, "error": self.document()}
