"""The verbs of one unit of work, on the writer's connection inside an open transaction."""

from __future__ import annotations

import json
from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import apsw

from commonplace.stores.base import AuditEntry, Entry, Reach, Record, StaleGeneration, Vectors
from commonplace.stores.commit_groups import TenantState
from commonplace.stores.graph import Triple, name_key
from commonplace.stores.row_format import AUDIT_COLUMNS, TRIPLE_COLUMNS, audit_cells, to_json, to_record, triple_cells
from commonplace.stores.sqlite.graph import ABOUT_SUBJECT, IN_ORDER, SELECT_TRIPLES, TRIPLE, write_links
from commonplace.stores.sqlite.page_scrub import DUE
from commonplace.stores.sqlite.queries import BY_ALIAS, BY_ID, RECORDS, fetch_memories, marks, to_row
from commonplace.stores.sqlite.schema import VERSION_COLUMNS
from commonplace.stores.sqlite.sql_where import reach_sql
from commonplace.stores.token_vectors import Codes
from commonplace.stores.vector_cells import to_cells
from commonplace.wire.errors import Conflict
from commonplace.wire.record import Memory, replace_fields

_COLUMNS = ", ".join(VERSION_COLUMNS)
_INSERT = f"INSERT INTO memories({_COLUMNS}) VALUES({marks(VERSION_COLUMNS)})"
_UPDATE = f"UPDATE memories SET {', '.join(f'{c}=?' for c in VERSION_COLUMNS)} WHERE mid=?"
_KEEP = f"INSERT INTO versions(mid, ended_seq, {_COLUMNS}) SELECT mid, ?, {_COLUMNS} FROM memories WHERE mid=?"
_VECTOR_NUMBERS = "SELECT vid FROM memories WHERE mid = ?1 UNION ALL SELECT vid FROM versions WHERE mid = ?1"
_CURRENT = (
    "SELECT m.mid, m.version, m.scope_id FROM memories m JOIN scopes s ON s.id = m.scope_id "
    "WHERE m.id = ? AND s.tenant_id = ?"
)

_PUT_TRIPLE = (
    f"INSERT INTO triples(scope_id, subject_key, object_key, {', '.join(TRIPLE_COLUMNS)}) "
    f"VALUES(?, ?, ?, {marks(TRIPLE_COLUMNS)}) "
    "ON CONFLICT(id) DO UPDATE SET valid_from = excluded.valid_from, valid_to = excluded.valid_to "
    "WHERE triples.scope_id = excluded.scope_id"
)
_NEWEST_FIRST = "ORDER BY t.valid_from DESC, t.tid DESC"
_NOT_EMPTY = "(t.valid_to IS NULL OR t.valid_to > t.valid_from)"

#: Statuses under which an alias still belongs to its memory.
_HOLDS_ALIAS = ("live", "archived")


@dataclass(slots=True)
class SqliteTransaction:
    """One caller's work. Writes open a savepoint first when others share the commit."""

    _db: apsw.Connection
    _state: TenantState
    now: int
    _generations: Sequence[int]  # the current one, then one being filled by a reindex, if any
    _second: int  # the generation of the second vectors, 0 where there are none
    _scopes: MutableMapping[tuple[int, str], int]  # the number of each (tenant, agent) met so far
    _savepoint_due: bool
    _leapt: bool = False  # whether this commit is dated before the last, which no search by time may walk past
    savepoint: bool = False
    wrote: bool = False
    touched: dict[int, int] = field(default_factory=dict)  # scopes whose index has something new, and how much
    erased: set[int] = field(default_factory=set)

    @property
    def seq(self) -> int:
        return self._state.seq

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
            self._db.execute("INSERT OR IGNORE INTO meta VALUES(?, ?)", (f"leap/{state.id}/{number}", number))
        state.at = self.now

    # memories

    def get(self, id: str) -> Memory | None:
        found = fetch_memories(self._db, BY_ID, (id, self._state.id))
        return found[0] if found else None

    def find(self, reach: Reach, *, limit: int | None = None) -> list[Memory]:
        sql, values = reach_sql(reach)
        scopes = [s for s in (self._scope(agent) for agent in reach.agents) if s is not None]
        rest = f"WHERE m.scope_id IN ({marks(scopes)}) AND {sql} ORDER BY m.created_at, m.id LIMIT ?"
        return fetch_memories(self._db, rest, (*scopes, *values, -1 if limit is None else limit))

    def by_alias(self, agent_id: str, alias: str) -> Memory | None:
        found = fetch_memories(self._db, BY_ALIAS, (self._scope(agent_id), alias))
        return found[0] if found else None

    def put(self, entry: Entry) -> Memory:
        if entry.vectors is not None and entry.generation != self._generations[0]:
            raise StaleGeneration
        memory = entry.memory
        # An id that was never written is looked for by the unique index alone, which the row is put into anyway.
        current = self._current(memory.id) if memory.version else None
        seq = self._next_seq()
        memory = replace_fields(memory, seq=seq, version=(current[1] if current else 0) + 1, updated_at=self.now)
        scope = self._scope(memory.agent_id, create=True)
        assert scope is not None
        cells = to_cells(entry.vectors, entry.tokens)
        self._db.execute(f"INSERT INTO vectors_{self._generations[0]}(data, tokens) VALUES(?, ?)", cells)
        vid = self._db.last_insert_rowid()
        if self._second and entry.second is not None and entry.second_generation == self._second:
            self._db.execute("INSERT INTO second_vectors VALUES(?, ?, ?)", (vid, *to_cells(entry.second, None)))
        row = to_row(memory, entry.terms, vid, scope)
        if current is None:
            try:
                self._db.execute(_INSERT, row)
                mid = self._db.last_insert_rowid()
            except apsw.ConstraintError as error:
                if (current := self._current(memory.id)) is None:  # another tenant's
                    raise Conflict(f"a memory with id {memory.id} exists already") from error
                memory = replace_fields(memory, version=current[1] + 1)
                row = to_row(memory, entry.terms, vid, scope)
        if current is not None:
            mid = current[0]
            self._db.execute(_KEEP, (seq, mid))
            self._db.execute(_UPDATE, (*row, mid))
        if memory.aliases or current is not None:
            self._set_aliases(scope, mid, memory)
        write_links(self._db, scope, mid, memory, fresh=current is None)
        self.touched[scope] = self.touched.get(scope, 0) + 1
        return memory

    def _set_aliases(self, scope: int, mid: int, memory: Memory) -> None:
        self._db.execute("DELETE FROM aliases WHERE mid = ?", (mid,))
        if memory.status in _HOLDS_ALIAS:
            for alias in memory.aliases:
                try:
                    self._db.execute("INSERT INTO aliases VALUES(?, ?, ?)", (scope, alias, mid))
                except apsw.ConstraintError as error:
                    raise Conflict(f"the id {alias!r} already names another memory of {memory.agent_id}") from error

    def add_vectors(
        self, id: str, number: int, generation: int, vectors: Vectors, tokens: Sequence[Codes] | None
    ) -> None:
        """Those of a version that was written without; nothing happens when it is gone."""
        if generation != self._generations[0]:
            raise StaleGeneration
        self._add_late(
            id,
            f"INSERT INTO vectors_{generation}(vid, data, tokens) VALUES(?, ?, ?) "
            "ON CONFLICT(vid) DO UPDATE SET data = excluded.data, tokens = excluded.tokens WHERE data IS NULL",
            (number, *to_cells(vectors, tokens)),
        )

    def add_second(self, id: str, number: int, generation: int, vectors: Vectors) -> None:
        """As `add_vectors`, by the second embedder."""
        if generation != self._second:
            raise StaleGeneration
        self._add_late(id, "INSERT OR IGNORE INTO second_vectors VALUES(?, ?, ?)", (number, *to_cells(vectors, None)))

    def _add_late(self, id: str, insert: str, row: tuple[int, bytes | None, bytes | None]) -> None:
        current = self._current(id)
        if current is None or (row[0],) not in self._db.execute(_VECTOR_NUMBERS, (current[0],)).fetchall():
            return
        mid, _, scope = current
        seq = self._next_seq()
        self._db.execute(insert, row)
        self._db.execute("INSERT OR REPLACE INTO late_vectors VALUES(?, ?, ?)", (mid, scope, seq))
        self.touched[scope] = self.touched.get(scope, 0) + 1

    def demote(self, ids: Sequence[str], factor: float) -> None:
        self._writing()
        self._db.executemany("UPDATE memories SET demotion = ? WHERE id = ?", [(factor, id) for id in ids])

    def count_recalls(self, ids: Sequence[str], at: int, times: int = 1) -> None:
        self._writing()
        self._db.executemany(
            "INSERT INTO recalls SELECT mid, ?, ? FROM memories WHERE id = ? ON CONFLICT(mid) DO UPDATE SET "
            "recalls = recalls + excluded.recalls, "
            "last_recalled_at = max(last_recalled_at, excluded.last_recalled_at)",
            [(times, at, id) for id in ids],
        )

    def _current(self, id: str) -> tuple[int, int, int] | None:
        """(mid, version, scope) of a memory."""
        return self._db.execute(_CURRENT, (id, self._state.id)).fetchone()

    def erase(self, id: str) -> None:
        current = self._current(id)
        if current is None:  # it may have been staged and never written: then only records quoted it
            self._writing()
            self._erase_audit_parts(id)
            return
        mid, _, scope = current
        seq = self._next_seq()
        vids = self._db.execute(_VECTOR_NUMBERS, (mid,)).fetchall()
        for generation in self._generations:
            self._db.executemany(f"DELETE FROM vectors_{generation} WHERE vid = ?", vids)
        self._db.executemany("DELETE FROM second_vectors WHERE vid = ?", vids)
        for table in ("aliases", "links", "recalls", "late_vectors", "versions", "memories"):
            self._db.execute(f"DELETE FROM {table} WHERE mid = ?", (mid,))
        self._erase_audit_parts(id)
        self._db.execute("INSERT INTO erasures VALUES(?, ?, ?, ?)", (scope, seq, mid, id))
        self.erased.add(scope)
        self.touched[scope] = self.touched.get(scope, 0) + 1

    def _erase_audit_parts(self, id: str) -> None:
        # An import chooses ids, so that another tenant may have the same one in its ledger.
        forget = "UPDATE audit_parts SET memory_id = NULL, payload = NULL, salt = NULL"
        self._db.execute(f"{forget} WHERE memory_id = ? AND tenant_id = ?", (id, self._state.id))
        self._db.execute("INSERT OR IGNORE INTO meta VALUES(?, 1)", (DUE,))

    def _scope(self, agent_id: str, create: bool = False) -> int | None:
        key = (self._state.id, agent_id)
        if key in self._scopes:
            return self._scopes[key]
        for (scope,) in self._db.execute("SELECT id FROM scopes WHERE tenant_id = ? AND agent_id = ?", key):
            self._scopes[key] = scope
            return int(scope)
        if not create:
            return None
        self._db.execute("INSERT INTO scopes(tenant_id, agent_id) VALUES(?, ?)", key)
        self._scopes[key] = self._db.last_insert_rowid()
        return self._scopes[key]

    # statements

    def triple(self, id: str) -> Triple | None:
        return self._triple(f"{SELECT_TRIPLES} WHERE t.id = ? AND s.tenant_id = ?", (id, self._state.id))

    def triple_at(self, agent_id: str, subject: str, predicate: str, at: int) -> Triple | None:
        # They never overlap, so of those that have begun only the last can hold: one step down the index.
        began = f"AND t.predicate = ? AND t.valid_from <= ? AND {_NOT_EMPTY} {_NEWEST_FIRST} LIMIT 1"
        values = (self._scope(agent_id), name_key(subject), subject, predicate, at)
        found = self._triple(f"{ABOUT_SUBJECT} {began}", values)
        return found if found is not None and found.holds(at) else None

    def triple_after(self, agent_id: str, subject: str, predicate: str, at: int) -> Triple | None:
        begins = f"AND t.predicate = ? AND t.valid_from > ? AND {_NOT_EMPTY} {IN_ORDER} LIMIT 1"
        values = (self._scope(agent_id), name_key(subject), subject, predicate, at)
        return self._triple(f"{ABOUT_SUBJECT} {begins}", values)

    def triples_from(self, memory_id: str) -> list[Triple]:
        sql = f"{SELECT_TRIPLES} WHERE t.memory_id = ? AND s.tenant_id = ? {IN_ORDER}"
        return [Triple(*TRIPLE.checked(row)) for row in self._db.execute(sql, (memory_id, self._state.id))]

    def put_triple(self, triple: Triple) -> None:
        self._writing()
        keys = name_key(triple.subject), name_key(triple.object)
        scope = self._scope(triple.agent_id, create=True)
        self._db.execute(_PUT_TRIPLE, (scope, *keys, *triple_cells(triple)))
        if not self._db.changes():
            raise Conflict(f"a statement with id {triple.id} exists already")

    def erase_triple(self, id: str) -> None:
        self._writing()
        ours = "scope_id IN (SELECT id FROM scopes WHERE tenant_id = ?)"
        self._db.execute(f"DELETE FROM triples WHERE id = ? AND {ours}", (id, self._state.id))
        if self._db.changes():
            self._erase_audit_parts(id)

    def _triple(self, sql: str, values: tuple[Any, ...]) -> Triple | None:
        row = self._db.execute(sql, values).fetchone()
        return None if row is None else Triple(*TRIPLE.checked(row))

    # audit

    def audit_head(self) -> tuple[int, str]:
        return self._state.audit_n, self._state.audit_hash

    def append_audit(self, entry: AuditEntry) -> None:
        self._writing()
        state = self._state
        self._db.execute(f"INSERT INTO audit VALUES(?, {marks(AUDIT_COLUMNS)})", (state.id, *audit_cells(entry)))
        self._db.executemany(
            "INSERT INTO audit_parts VALUES(?, ?, ?, ?, ?, ?, ?)",
            [(state.id, entry.n, i, p.memory_id, p.payload, p.salt, p.hash) for i, p in enumerate(entry.parts)],
        )
        self._date()
        state.audit_n, state.audit_hash = entry.n, entry.hash

    # records

    def record(self, kind: str, key: str) -> Record | None:
        row = self._db.execute(f"{RECORDS} AND key = ?", (self._state.id, kind, key)).fetchone()
        return None if row is None else to_record(row)

    def put_record(self, record: Record) -> None:
        self.drop_record(record.kind, record.key)
        about = to_json(list(record.about)) if record.about else None
        key = (self._state.id, record.kind, record.key)
        self._db.execute("INSERT INTO records VALUES(?, ?, ?, ?, ?)", (*key, to_json(record.value), about))
        subjects = [(memory_id, *key) for memory_id in record.about]
        self._db.executemany("INSERT OR IGNORE INTO record_subjects VALUES(?, ?, ?, ?)", subjects)

    def drop_record(self, kind: str, key: str) -> None:
        self._writing()
        where = (self._state.id, kind, key)
        delete = "DELETE FROM records WHERE tenant_id = ? AND kind = ? AND key = ? RETURNING about"
        for (about,) in self._db.execute(delete, where).fetchall():
            self._db.executemany(
                "DELETE FROM record_subjects WHERE memory_id = ? AND tenant_id = ? AND kind = ? AND key = ?",
                [(memory_id, *where) for memory_id in (json.loads(str(about)) if about else ())],
            )

    def records_about(self, memory_id: str) -> list[Record]:
        sql = (
            "SELECT r.kind, r.key, r.value, r.about FROM record_subjects s "
            "JOIN records r ON r.tenant_id = s.tenant_id AND r.kind = s.kind AND r.key = s.key "
            "WHERE s.memory_id = ? AND s.tenant_id = ?"
        )
        return [to_record(row) for row in self._db.execute(sql, (memory_id, self._state.id))]
