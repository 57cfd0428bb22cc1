"""What a unit of work does to statements; the rest of it is in `transaction`."""

from __future__ import annotations

from typing import Any

from commonplace.stores.graph import Triple, name_key
from commonplace.stores.postgres.connections import Session
from commonplace.stores.postgres.graph import ABOUT_SUBJECT, IN_ORDER, SELECT_TRIPLES
from commonplace.stores.postgres.queries import marks
from commonplace.stores.row_format import TRIPLE_COLUMNS, triple_cells
from commonplace.wire.errors import Conflict

_PUT_TRIPLE = (
    f"INSERT INTO triples(scope_id, subject_key, object_key, {', '.join(TRIPLE_COLUMNS)}) "
    f"VALUES(%s, %s, %s, {marks(TRIPLE_COLUMNS)}) "
    "ON CONFLICT(id) DO UPDATE SET valid_from = excluded.valid_from, valid_to = excluded.valid_to "
    "WHERE triples.scope_id = excluded.scope_id RETURNING tid"
)
_NEWEST_FIRST = "ORDER BY t.valid_from DESC, t.tid DESC"
_NOT_EMPTY = "(t.valid_to IS NULL OR t.valid_to > t.valid_from)"


class StatementWork:
    """The protocol `GraphWork`, of whoever has these."""

    __slots__ = ()
    _db: Session

    @property
    def _tenant_id(self) -> int:
        raise NotImplementedError

    def _writing(self) -> None:
        raise NotImplementedError

    def _scope(self, agent_id: str, create: bool = False) -> int | None:
        raise NotImplementedError

    def _erase_audit_parts(self, id: str) -> None:
        raise NotImplementedError

    def triple(self, id: str) -> Triple | None:
        return self._triple(f"{SELECT_TRIPLES} WHERE t.id = %s AND s.tenant_id = %s", (id, self._tenant_id))

    def triple_at(self, agent_id: str, subject: str, predicate: str, at: int) -> Triple | None:
        # They never overlap, so of those that have begun only the last can hold.
        began = f"AND t.predicate = %s AND t.valid_from <= %s AND {_NOT_EMPTY} {_NEWEST_FIRST} LIMIT 1"
        key = name_key(subject)
        found = self._triple(f"{ABOUT_SUBJECT} {began}", (self._scope(agent_id), key, key, subject, predicate, at))
        return found if found is not None and found.holds(at) else None

    def triple_after(self, agent_id: str, subject: str, predicate: str, at: int) -> Triple | None:
        begins = f"AND t.predicate = %s AND t.valid_from > %s AND {_NOT_EMPTY} {IN_ORDER} LIMIT 1"
        key = name_key(subject)
        return self._triple(f"{ABOUT_SUBJECT} {begins}", (self._scope(agent_id), key, key, subject, predicate, at))

    def triples_from(self, memory_id: str) -> list[Triple]:
        named = "md5(t.memory_id) = md5(%s) AND t.memory_id = %s AND s.tenant_id = %s"
        sql = f"{SELECT_TRIPLES} WHERE {named} {IN_ORDER}"
        return [Triple(*row) for row in self._db.rows(sql, (memory_id, memory_id, self._tenant_id))]

    def put_triple(self, triple: Triple) -> None:
        self._writing()
        keys = name_key(triple.subject), name_key(triple.object)
        scope = self._scope(triple.agent_id, create=True)
        if not self._db.rows(_PUT_TRIPLE, (scope, *keys, *triple_cells(triple))):
            raise Conflict(f"a statement with id {triple.id} exists already")

    def erase_triple(self, id: str) -> None:
        self._writing()
        ours = "scope_id IN (SELECT id FROM scopes WHERE tenant_id = %s)"
        if self._db.rows(f"DELETE FROM triples WHERE id = %s AND {ours} RETURNING tid", (id, self._tenant_id)):
            self._erase_audit_parts(id)

    def _triple(self, sql: str, values: tuple[Any, ...]) -> Triple | None:
        row = self._db.row(sql, values)
        return None if row is None else Triple(*row)
