"""All policy, once: what may be written, read, merged, forgotten, staged and audited. No HTTP, no SQL."""

from commonplace.engine.engine import Engine

__all__ = ["Engine"]
