"""What the operations of memorywire share: the engine, and the caller on whose behalf it is asked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from commonplace.dialects.memorywire.records import NAME
from commonplace.engine import Engine
from commonplace.wire.record import Principal

Document = dict[str, Any]


class MemorywireBase:
    def __init__(self, engine: Engine, who: Principal) -> None:
        self._engine = engine
        self._who = replace(who, dialect=NAME)
