"""Streamable HTTP by the official SDK. It carries the messages; what they say is said by our own speaker."""

from __future__ import annotations

import asyncio
from typing import Any

from mcp import MCPError
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from commonplace.__about__ import __version__
from commonplace.serve.mcp.messages import INTERNAL_ERROR, Problem
from commonplace.serve.mcp.places import SESSION
from commonplace.serve.mcp.speaker import Speaker


def manager(speaker: Speaker, *, max_body: int, timeout: float) -> StreamableHTTPSessionManager:
    """Every request stands alone, in every era: who asks is told by its token, not by a session id."""
    server: Server[Any] = Server("commonplace", version=__version__)

    async def answer(ctx: Any, call_next: Any) -> Any:
        if ctx.request_id is None:
            return None  # a notification: there is nothing here for it to change
        try:
            async with asyncio.timeout(timeout):
                session = ctx.request.scope[SESSION]
                era = ctx.protocol_version
                params = dict(ctx.params) if ctx.params is not None else None
                if ctx.method != "initialize":
                    era = speaker.era_of(ctx.method, params, era)
                return await speaker.answer(session, era, ctx.method, params)
        except Problem as problem:
            raise MCPError(code=problem.code, message=problem.message, data=problem.data) from None
        except TimeoutError:
            sentence = f"this took longer than {timeout:g} s and was given up; a write may still have been kept"
            raise MCPError(code=INTERNAL_ERROR, message=sentence) from None

    server.middleware[:] = [answer]
    return StreamableHTTPSessionManager(server, json_response=True, stateless=True, max_request_body_size=max_body)
