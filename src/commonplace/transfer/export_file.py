"""Writing an export: lines of JSON, one record each, and a last line that says how many there are and their hash."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import AsyncGenerator
from typing import Any

from commonplace.engine import Engine, Progress
from commonplace.transfer import records
from commonplace.wire.record import Principal

Document = dict[str, Any]

_compact = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode
_ascii = json.JSONEncoder(ensure_ascii=True, sort_keys=True, separators=(",", ":")).encode


def encode(document: Document) -> bytes:
    """One line, the same for the same document always."""
    try:
        return _compact(document).encode("utf-8") + b"\n"
    except UnicodeEncodeError:  # half a surrogate pair, which only an escape can carry
        return _ascii(document).encode("ascii") + b"\n"


class ExportFile:
    """The lines of one export, in order; `counts` is complete once they are read to their end.

    `left_out_agents` is how many agents are not in it because their names hold a secret; the file does not say it.
    """

    def __init__(
        self, engine: Engine, who: Principal, *, agent: str | None = None, user: str | None = None,
        progress: Progress | None = None,
    ) -> None:  # fmt: skip
        self._engine, self._who = engine, who
        self._agent, self._user = agent, user
        self._progress = progress or (lambda done, total: None)
        self._digest, self._lines = hashlib.sha256(), 0
        self.counts: Counter[str] = Counter(memory=0, version=0, statement=0, palace=0)
        self.left_out_agents = 0

    async def lines(self) -> AsyncGenerator[bytes, None]:
        exports, who = self._engine.exports, self._who
        agents = await exports.agents(who, self._agent)
        if self._agent is None:
            self.left_out_agents = await exports.count_left_out(who)
        total = sum([await exports.count(who, agent, self._user) for agent in agents])
        yield self._line(records.header(self._agent, self._user))
        for agent in agents:
            async for versions in exports.memories(who, agent, self._user):
                self.counts["memory"] += 1
                self.counts["version"] += len(versions)
                self._progress(self.counts["memory"], total)
                yield self._line(records.memory_document(versions))
            if self._user is not None:
                continue  # statements and palaces are nobody's in particular
            for triple in await exports.statements(who, agent):
                self.counts["statement"] += 1
                yield self._line(records.statement_document(triple))
            if (palace := await exports.palace(who, agent)) is not None:
                self.counts["palace"] += 1
                yield self._line(records.palace_document(palace))
        yield encode(records.manifest(self.counts, self._lines, self._digest.hexdigest()))

    def _line(self, document: Document) -> bytes:
        line = encode(document)
        self._digest.update(line)
        self._lines += 1
        return line
