"""Exports and imports over HTTP: the file that `commonplace export` writes and `commonplace import` takes."""

from __future__ import annotations

from commonplace.serve.query import parameters
from commonplace.serve.routes import ByteStream, Call, ProtocolRoutes, Reply, Route

POSITION = 1
_NDJSON = "application/x-ndjson"
_OPERATIONS = "memorywire/operations/"
_FILE_NAME = "commonplace-export.jsonl"


async def _export(call: Call) -> Reply:
    from commonplace.transfer.export_file import ExportFile  # which loads the engine: not before the first call

    asked = call.query
    lines = ExportFile(call.engine, call.who, agent=asked.get("agent_id"), user=asked.get("user_id")).lines()
    headers = {"Content-Type": _NDJSON, "Content-Disposition": f'attachment; filename="{_FILE_NAME}"'}
    return Reply(ByteStream(await anext(lines), lines), headers=headers)


async def _import(call: Call) -> Reply:
    from commonplace.dialects.memorywire.records import store_errors
    from commonplace.transfer.import_file import import_export

    with call.engine.reporting(call.who) as undelivered:
        done = await import_export(call.engine, call.who, call.document, **call.query)
    return Reply(done.document() | store_errors(undelivered))


ROUTES = (
    Route("GET", "/v0/export", _export, "export", "What the caller can read, as one file.", "transfer",
          query=parameters(f"{_OPERATIONS}export"), response_file=_NDJSON),
    Route("POST", "/v0/import", _import, "import", "Take in such a file.", "transfer", role="admin",
          query=parameters(f"{_OPERATIONS}import"), request_file=_NDJSON,
          response=f"{_OPERATIONS}import.response"),
)  # fmt: skip
PROTOCOLS = (ProtocolRoutes("/v0", ROUTES),)
