"""trusty-memory's ten tools, listed as trusty-memory lists them."""

from __future__ import annotations

from collections.abc import Callable

from commonplace.dialects.trusty.tools import NAME, TOOLS, VERSION, input_schema
from commonplace.serve.mcp.schemas import answer
from commonplace.serve.mcp.table import HANDSHAKE_ERAS, Document, Handler, Hints, Session, Tool, ToolSet

_READS = Hints(read_only=True, destructive=False, idempotent=True)
_ADDS = Hints(read_only=False, destructive=False, idempotent=False)
_MAKES = Hints(read_only=False, destructive=False, idempotent=True)
_CHANGES = Hints(read_only=False, destructive=True, idempotent=True)
#: Clients of the first era are shown no hints: trusty-memory gives them none.
HINTS = {
    "memory_remember": _ADDS, "memory_recall": _READS, "memory_recall_deep": _READS, "palace_create": _MAKES,
    "palace_list": _READS, "kg_assert": _CHANGES, "kg_query": _READS, "memory_list": _READS,
    "memory_forget": _CHANGES, "palace_info": _READS,
}  # fmt: skip
_INTERNAL_ERROR = -32603


def server_info(session: Session) -> Document:
    """Name and version are trusty-memory's own, because its clients may look at them."""
    info: Document = {"name": NAME, "version": VERSION}
    return info if session.palace is None else info | {"default_palace": session.palace}


def _input(name: str) -> Callable[[Session], Document]:
    return lambda session: input_schema(name, palace=session.palace is None)


def _handler(name: str) -> Handler:
    async def call(session: Session, arguments: Document) -> Document:
        from commonplace.dialects.trusty.operations import Trusty  # which loads the engine: not before the first call

        return await Trusty(await session.engine(), session.who, session.palace).call(name, arguments)

    return call


SET = ToolSet(
    "trusty",
    tuple(
        Tool(
            name, description, _input(name), HINTS[name], _handler(name),
            answer(f"trusty/tools/{name}.response"), faults="error",
        )
        for name, (description, _, _) in TOOLS.items()
    ),
    server_info,
    eras=HANDSHAKE_ERAS,  # its methods are a closed list, without the stateless era's `server/discover`
    fallback=HANDSHAKE_ERAS[0],
    unknown_tool=lambda name: (_INTERNAL_ERROR, f"unknown tool: {name}"),
    invalid_params=_INTERNAL_ERROR,
    in_order=True,
)  # fmt: skip
