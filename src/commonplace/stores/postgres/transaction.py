"""The verbs of one unit of work, on a connection that holds its tenant's lock inside an open transaction.

The lock makes what was looked up stay so until the commit: whether an id, an alias or a scope is there is asked first,
and no statement fails that was sent ahead.
"""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from commonplace.stores.base import AuditEntry, Entry, Reach, Record, StaleGeneration, Vectors
from commonplace.stores.commit_groups import TenantState
from commonplace.stores.graph import LINKED, links_of
from commonplace.stores.postgres import found_by
from commonplace.stores.postgres.connections import Session
from commonplace.stores.postgres.queries import BY_ALIAS, OF_KEY, RECORDS, fetch_memories, marks, to_row
from commonplace.stores.postgres.schema import VERSION_COLUMNS
from commonplace.stores.postgres.sql_where import reach_sql
from commonplace.stores.postgres.statement_work import StatementWork
from commonplace.stores.postgres.text_cells import encode_json
from commonplace.stores.row_format import AUDIT_COLUMNS, audit_cells, to_json, to_record
from commonplace.stores.token_vectors import Codes
from commonplace.stores.vector_cells import to_cells
from commonplace.wire.errors import Conflict
from commonplace.wire.record import Memory, replace_fields

BLOCK = 256  # numbers that one value of the sequence stands for

_COLUMNS = ", ".join(VERSION_COLUMNS)
_INSERT = f"INSERT INTO memories(mid, {_COLUMNS}) VALUES(%s, {marks(VERSION_COLUMNS)})"
_UPDATE = f"UPDATE memories SET {', '.join(f'{c} = %s' for c in VERSION_COLUMNS)} WHERE mid = %s"
_KEEP = f"INSERT INTO versions(mid, ended_seq, {_COLUMNS}) SELECT mid, %s, {_COLUMNS} FROM memories WHERE mid = %s"
_VECTOR_NUMBERS = "SELECT vid FROM memories WHERE mid = %s UNION ALL SELECT vid FROM versions WHERE mid = %s"
_CURRENT = (
    "SELECT m.mid, m.version, m.scope_id, m.vid, CASE WHEN m.status = 'live' THEN m.terms END, s.tenant_id "
    "FROM memories m JOIN scopes s ON s.id = m.scope_id WHERE m.id = %s"
)

#: Statuses under which an alias still belongs to its memory.
_HOLDS_ALIAS = ("live", "archived")


@dataclass(slots=True, frozen=True)
class Embedders:
    """What the store knows of its embedders while the lock is held."""

    generation: int
    filling: int | None  # a generation that a reindex is making
    dimension: int | None
    second: int  # the generation of the second vectors, 0 where there are none
    second_dimension: int | None

    @classmethod
    def of(cls, meta: dict[str, Any]) -> Embedders:
        return cls(
            meta["generation"],
            meta.get("next_generation"),
            meta.get("dimension"),
            meta.get("second_generation", 0),
            meta.get("second_dimension"),
        )


@dataclass(slots=True)
class _Current:
    """Where a memory stands: its row, and the words it is found by while it lives."""

    mid: int
    version: int
    scope: int
    vid: int
    live_terms: bytes | None


@dataclass(slots=True)
class PostgresTransaction(StatementWork):
    """One caller's work. Writes open a savepoint first when others share the commit."""

    _db: Session
    _state: TenantState
    now: int
    _embedders: Embedders
    _numbers: list[int]  # free ones, ascending; shared with others of the group
    _scopes: MutableMapping[tuple[int, str], int]  # the number of each (tenant, agent) met so far
    _savepoint_due: bool
    _leapt: bool = False  # whether this commit is dated before the last, which no search by time may walk past
    savepoint: bool = False
    wrote: bool = False
    grown: dict[int, int] = field(default_factory=dict)  # live memories that each scope has more

    @property
    def seq(self) -> int:
        return self._state.seq

    @property
    def _tenant_id(self) -> int:
        return self._state.id

    def _writing(self) -> None:
        if self._savepoint_due:
            self._db.execute("SAVEPOINT work")
            self._savepoint_due = False
            self.savepoint = True
        self.wrote = True
        self._state.changed = True

    def _next_seq(self) -> int:
        self._writing()
        state = self._state
        state.seq += 1
        self._date()
        return state.seq

    def _date(self) -> None:
        """The tenant's last time is this work's from now on. Where it was later, as where a migration brings what was
        written before a clock was set back, the next entry of the ledger is the first behind a leap."""
        state = self._state
        if self._leapt or self.now < state.at:
            self._leapt = False
            number = state.audit_n + 1
            self._db.execute("INSERT INTO clock_leaps VALUES(%s, %s) ON CONFLICT DO NOTHING", (state.id, number))
        state.at = self.now

    def _number(self) -> int:
        if not self._numbers:
            (last,) = self._db.one("SELECT nextval('numbers')", ())
            self._numbers += range(last, last + BLOCK)
        return self._numbers.pop(0)

    # memories

    def get(self, id: str) -> Memory | None:
        found = fetch_memories(self._db, "WHERE m.id = %s AND s.tenant_id = %s", (id, self._state.id))
        return found[0] if found else None

    def find(self, reach: Reach, *, limit: int | None = None) -> list[Memory]:
        sql, values = reach_sql(reach)
        scopes = [s for s in (self._scope(agent) for agent in reach.agents) if s is not None]
        rest = f"WHERE m.scope_id = ANY(%s) AND {sql} ORDER BY m.created_at, m.id LIMIT %s"
        return fetch_memories(self._db, rest, (scopes, *values, limit))

    def by_alias(self, agent_id: str, alias: str) -> Memory | None:
        found = fetch_memories(self._db, BY_ALIAS, ([self._scope(agent_id)], alias, alias))
        return found[0] if found else None

    def put(self, entry: Entry) -> Memory:
        embedders = self._embedders
        if entry.vectors is not None and entry.generation != embedders.generation:
            raise StaleGeneration
        memory = entry.memory
        current = self._current(memory.id)
        self._check_aliases(memory, current)
        seq = self._next_seq()
        memory = replace_fields(memory, seq=seq, version=(current.version if current else 0) + 1, updated_at=self.now)
        scope = self._scope(memory.agent_id, create=True)
        assert scope is not None
        mid, vid = current.mid if current else self._number(), self._number()
        data, tokens = to_cells(entry.vectors, entry.tokens)
        self._db.execute(f"INSERT INTO vectors_{embedders.generation} VALUES(%s, %s, %s)", (vid, data, tokens))
        second = entry.second if embedders.second and entry.second_generation == embedders.second else None
        if second is not None:
            self._db.execute("INSERT INTO second_vectors VALUES(%s, %s)", (vid, to_cells(second, None)[0]))
        row = to_row(memory, entry.terms, vid, scope)
        if current is None:
            self._db.execute(_INSERT, (mid, *row))
        else:
            self._unindex(current)
            self._db.execute(_KEEP, (seq, mid))
            self._db.execute(_UPDATE, (*row, mid))
            for table in ("aliases", "links"):
                self._db.execute(f"DELETE FROM {table} WHERE mid = %s", (mid,))
        self._name(scope, mid, memory)
        if memory.status == "live":
            found_by.add_words(self._db, scope, mid, entry.terms)
            self.grown[scope] = self.grown.get(scope, 0) + 1
            found_by.add_vectors(self._db, f"parts_{embedders.generation}", embedders.dimension, scope, mid, data)
            if second is not None:
                cells = to_cells(second, None)[0]
                found_by.add_vectors(self._db, "second_parts", embedders.second_dimension, scope, mid, cells)
        return memory

    def _check_aliases(self, memory: Memory, current: _Current | None) -> None:
        if not memory.aliases or memory.status not in _HOLDS_ALIAS:
            return
        sql = (
            "SELECT a.alias FROM unnest(%s::text[]) w JOIN aliases a ON md5(a.alias) = md5(w) AND a.alias = w "
            "WHERE a.scope_id = %s AND a.mid <> %s LIMIT 1"
        )
        mine = current.mid if current else -1
        for (alias,) in self._db.rows(sql, (memory.aliases, self._scope(memory.agent_id), mine)):
            raise Conflict(f"the id {alias!r} already names another memory of {memory.agent_id}")

    def _name(self, scope: int, mid: int, memory: Memory) -> None:
        """Its aliases, and what it is linked to."""
        if memory.aliases and memory.status in _HOLDS_ALIAS:
            aliases = list(dict.fromkeys(memory.aliases))
            self._db.execute("INSERT INTO aliases SELECT %s, unnest(%s::text[]), %s", (scope, aliases, mid))
        if memory.status in LINKED and (found := list(dict.fromkeys(links_of(memory)))):
            kinds, targets = [kind for kind, _ in found], [target for _, target in found]
            sql = "INSERT INTO links SELECT %s, kind, target, %s FROM unnest(%s::int[], %s::text[]) w(kind, target)"
            self._db.execute(sql, (scope, mid, kinds, targets))

    def _unindex(self, current: _Current) -> None:
        if current.live_terms is not None:
            found_by.drop_words(self._db, current.scope, current.mid, current.live_terms)
            for table in self._part_tables():
                found_by.drop_vectors(self._db, table, current.scope, current.mid)

    def _part_tables(self) -> list[str]:
        embedders = self._embedders
        first = [f"parts_{embedders.generation}"] if embedders.dimension is not None else []
        filling = [f"parts_{embedders.filling}"] if embedders.filling is not None else []
        return [*first, *filling, *(["second_parts"] if embedders.second else [])]

    def add_vectors(
        self, id: str, number: int, generation: int, vectors: Vectors, tokens: Sequence[Codes] | None
    ) -> None:
        """Those of a version that was written without; nothing happens when it is gone."""
        if generation != self._embedders.generation:
            raise StaleGeneration
        current = self._version(id, number)
        if current is None:
            return
        self._next_seq()
        data, packed = to_cells(vectors, tokens)
        table = f"vectors_{generation}"
        self._db.execute(
            f"INSERT INTO {table} VALUES(%s, %s, %s) ON CONFLICT(vid) DO UPDATE SET data = excluded.data, "
            f"tokens = excluded.tokens WHERE {table}.data IS NULL",
            (number, data, packed),
        )
        if current.vid == number and current.live_terms is not None:
            self._replace_parts(f"parts_{generation}", self._embedders.dimension, current, data)

    def add_second(self, id: str, number: int, generation: int, vectors: Vectors) -> None:
        """As `add_vectors`, by the second embedder."""
        if generation != self._embedders.second:
            raise StaleGeneration
        current = self._version(id, number)
        if current is None:
            return
        self._next_seq()
        data, _ = to_cells(vectors, None)
        self._db.execute("INSERT INTO second_vectors VALUES(%s, %s) ON CONFLICT DO NOTHING", (number, data))
        if current.vid == number and current.live_terms is not None:
            self._replace_parts("second_parts", self._embedders.second_dimension, current, data)

    def _replace_parts(self, table: str, dimension: int | None, current: _Current, data: bytes | None) -> None:
        found_by.drop_vectors(self._db, table, current.scope, current.mid)
        found_by.add_vectors(self._db, table, dimension, current.scope, current.mid, data)

    def _version(self, id: str, number: int) -> _Current | None:
        """Where a memory stands that still has the version of this number."""
        current = self._current(id)
        if current is None or (number,) not in self._db.rows(_VECTOR_NUMBERS, (current.mid, current.mid)):
            return None
        return current

    def demote(self, ids: Sequence[str], factor: float) -> None:
        self._writing()
        self._db.execute("UPDATE memories SET demotion = %s WHERE id = ANY(%s::text[])", (factor, list(ids)))

    def count_recalls(self, ids: Sequence[str], at: int, times: int = 1) -> None:
        self._writing()
        self._db.execute(
            "INSERT INTO recalls SELECT mid, w.times * %s, %s FROM "
            "(SELECT id, count(*) AS times FROM unnest(%s::text[]) id GROUP BY id) w "
            "JOIN memories m ON m.id = w.id ON CONFLICT(mid) DO UPDATE SET "
            "recalls = recalls.recalls + excluded.recalls, "
            "last_recalled_at = greatest(recalls.last_recalled_at, excluded.last_recalled_at)",
            (times, at, list(ids)),
        )

    def _current(self, id: str) -> _Current | None:
        row = self._db.row(_CURRENT, (id,))
        if row is None:
            return None
        *of, owner = row
        if owner != self._state.id:
            raise Conflict(f"a memory with id {id} exists already")
        return _Current(*of)

    def erase(self, id: str) -> None:
        row = self._db.row(f"{_CURRENT} AND s.tenant_id = %s", (id, self._state.id))
        if row is None:  # it may have been staged and never written: then only records quoted it
            self._writing()
            self._erase_audit_parts(id)
            return
        current = _Current(*row[:-1])
        seq, mid = self._next_seq(), current.mid
        self._unindex(current)
        vids = [vid for (vid,) in self._db.rows(_VECTOR_NUMBERS, (mid, mid))]
        filling = self._embedders.filling
        generations = [self._embedders.generation, *([filling] if filling is not None else [])]
        for table in (*(f"vectors_{generation}" for generation in generations), "second_vectors"):
            self._db.execute(f"DELETE FROM {table} WHERE vid = ANY(%s)", (vids,))
        for table in ("aliases", "links", "recalls", "versions", "memories"):
            self._db.execute(f"DELETE FROM {table} WHERE mid = %s", (mid,))
        self._erase_audit_parts(id)
        self._db.execute("INSERT INTO erasures VALUES(%s, %s, %s, %s)", (current.scope, seq, mid, id))

    def _erase_audit_parts(self, id: str) -> None:
        self._db.execute(
            "UPDATE audit_parts SET memory_id = NULL, payload = NULL, salt = NULL "
            "WHERE tenant_id = %s AND md5(memory_id) = md5(%s) AND memory_id = %s",
            (self._state.id, id, id),
        )

    def _scope(self, agent_id: str, create: bool = False) -> int | None:
        key = (self._state.id, agent_id)
        if key in self._scopes:
            return self._scopes[key]
        found = "SELECT id FROM scopes WHERE tenant_id = %s AND md5(agent_id) = md5(%s) AND agent_id = %s"
        row = self._db.row(found, (*key, agent_id))
        if row is None and create:
            self._writing()
            row = self._db.one("INSERT INTO scopes(tenant_id, agent_id) VALUES(%s, %s) RETURNING id", key)
        if row is None:
            return None
        self._scopes[key] = int(row[0])
        return self._scopes[key]

    # audit

    def audit_head(self) -> tuple[int, str]:
        return self._state.audit_n, self._state.audit_hash

    def append_audit(self, entry: AuditEntry) -> None:
        self._writing()
        state = self._state
        self._db.execute(f"INSERT INTO audit VALUES(%s, {marks(AUDIT_COLUMNS)})", (state.id, *audit_cells(entry)))
        for i, part in enumerate(entry.parts):
            row = (state.id, entry.n, i, part.memory_id, part.payload, part.salt, part.hash)
            self._db.execute("INSERT INTO audit_parts VALUES(%s, %s, %s, %s, %s, %s, %s)", row)
        self._date()
        state.audit_n, state.audit_hash = entry.n, entry.hash

    # records

    def record(self, kind: str, key: str) -> Record | None:
        row = self._db.row(f"{RECORDS} {OF_KEY}", (self._state.id, kind, key, key))
        return None if row is None else to_record(row)

    def put_record(self, record: Record) -> None:
        self.drop_record(record.kind, record.key)
        about = to_json(list(record.about)) if record.about else None
        key = (self._state.id, record.kind, record.key)
        value = encode_json(to_json(record.value))
        about = None if about is None else encode_json(about)
        self._db.execute("INSERT INTO records VALUES(%s, %s, %s, %s, %s)", (*key, value, about))
        if record.about:
            sql = "INSERT INTO record_subjects SELECT %s, unnest(%s::text[]), %s, %s"
            tenant, kind, name = key
            self._db.execute(sql, (tenant, list(dict.fromkeys(record.about)), kind, name))

    def drop_record(self, kind: str, key: str) -> None:
        self._writing()
        for table in ("records", "record_subjects"):
            where = f"WHERE tenant_id = %s AND kind = %s {OF_KEY}"
            self._db.execute(f"DELETE FROM {table} {where}", (self._state.id, kind, key, key))

    def records_about(self, memory_id: str) -> list[Record]:
        sql = (
            "SELECT r.kind, r.key, r.value, r.about FROM record_subjects s "
            "JOIN records r ON r.tenant_id = s.tenant_id AND r.kind = s.kind AND md5(r.key) = md5(s.key) "
            "AND r.key = s.key WHERE s.tenant_id = %s AND md5(s.memory_id) = md5(%s) AND s.memory_id = %s"
        )
        return [to_record(row) for row in self._db.rows(sql, (self._state.id, memory_id, memory_id))]
