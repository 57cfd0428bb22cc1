"""How a session of its own opens the engine; loaded only when one is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from commonplace.embedders.base import Embedder, Unloadable
from commonplace.embedders.registry import open_embedder
from commonplace.engine import Settings
from commonplace.sdk import open_engine
from commonplace.serve.lending import lender
from commonplace.serve.mcp.borrowing import Borrowing

if TYPE_CHECKING:
    from commonplace.config import Config
    from commonplace.engine import Engine


async def open_session_engine(config: Config) -> Engine:
    """With the embedder, and the address for reviews, of a server that runs on the same data: a model of its own
    would cost each session some 100 MB."""
    own = open_embedder(config.embedder)
    if own is not None and isinstance(own, Unloadable):
        own = cast(Embedder, Borrowing(own, config.data))
    running = lender(config.data)
    settings = Settings(review_url=f"{running.url}/v0/reviews" if running is not None else "")
    return await open_engine(config, embedder=own, settings=settings)
