"""Every protocol the server speaks, as tables of routes."""

from __future__ import annotations

from commonplace.serve import amp, embeddings, rpc, v0
from commonplace.serve.binding import Protocol

PROTOCOLS: tuple[Protocol, ...] = (v0.PROTOCOL, rpc.PROTOCOL, amp.PROTOCOL, embeddings.PROTOCOL)
