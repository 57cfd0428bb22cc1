"""Every protocol the server speaks, as tables of routes."""

from __future__ import annotations

from commonplace.config import Config
from commonplace.serve import amp, embeddings, mrp, openwop, rpc, v0
from commonplace.serve.routes import Protocol

PROTOCOLS: tuple[Protocol, ...] = (
    v0.PROTOCOL, rpc.PROTOCOL, amp.PROTOCOL, embeddings.PROTOCOL, openwop.PROTOCOL, openwop.WELL_KNOWN,
    mrp.PROTOCOL,
)  # fmt: skip


def spoken(config: Config) -> tuple[Protocol, ...]:
    """Those, and what the operator asked for besides."""
    return openwop.hosted(PROTOCOLS) if config.openwop_host else PROTOCOLS
