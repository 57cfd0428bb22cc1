"""The tables, and the numbered steps that made them. A step, once released, is never edited."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import apsw

APPLICATION_ID = 0x434D504C  # "CMPL"

_VERSION_DDL = """
  vid INTEGER NOT NULL, scope_id INTEGER NOT NULL, id TEXT NOT NULL, seq INTEGER NOT NULL,
  version INTEGER NOT NULL, status TEXT NOT NULL, type TEXT NOT NULL, kind TEXT NOT NULL, content TEXT NOT NULL,
  user_id TEXT, project TEXT, title TEXT, entity_name TEXT, tags TEXT, metadata TEXT, confidence REAL NOT NULL,
  importance REAL, source TEXT, provenance TEXT, privacy TEXT, created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL, expires_at INTEGER, event_time INTEGER, demotion REAL NOT NULL, session_id TEXT,
  speaker TEXT, supersedes TEXT, merged_into TEXT, aliases TEXT, content_hash TEXT NOT NULL, salt BLOB NOT NULL,
  terms BLOB NOT NULL
"""
#: The columns of one version of a memory, in both `memories` (current) and `versions` (earlier).
VERSION_COLUMNS = tuple(column.split()[0] for column in _VERSION_DDL.split(","))

Migration = Callable[[apsw.Connection], None]


def m001_create_tables(db: apsw.Connection) -> None:
    db.execute(f"""
CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE tenants(
  id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, seq INTEGER NOT NULL DEFAULT 0, at INTEGER NOT NULL DEFAULT 0,
  audit_n INTEGER NOT NULL DEFAULT 0, audit_hash TEXT NOT NULL DEFAULT '');
CREATE TABLE scopes(
  id INTEGER PRIMARY KEY, tenant_id INTEGER NOT NULL, agent_id TEXT NOT NULL, UNIQUE(tenant_id, agent_id));

-- AUTOINCREMENT: segments know rows by `mid`, so a number must never come back with other content.
CREATE TABLE memories(mid INTEGER PRIMARY KEY AUTOINCREMENT, {_VERSION_DDL});
CREATE UNIQUE INDEX memories_by_id ON memories(id);
-- status is in it so that counting the live ones reads the index alone
CREATE INDEX memories_by_change ON memories(scope_id, seq, status);
CREATE INDEX memories_by_time ON memories(scope_id, created_at, id);
CREATE INDEX memories_by_entity ON memories(scope_id, entity_name) WHERE entity_name IS NOT NULL;
CREATE INDEX memories_by_session ON memories(scope_id, session_id, mid) WHERE session_id IS NOT NULL;
CREATE INDEX memories_by_speaker ON memories(scope_id, speaker) WHERE speaker IS NOT NULL;
CREATE INDEX memories_superseding ON memories(scope_id) WHERE supersedes IS NOT NULL;
CREATE TABLE versions(mid INTEGER NOT NULL, ended_seq INTEGER NOT NULL, {_VERSION_DDL});
CREATE INDEX versions_by_memory ON versions(mid, version);
CREATE INDEX versions_by_scope ON versions(scope_id, ended_seq);
CREATE TABLE erasures(scope_id INTEGER NOT NULL, seq INTEGER NOT NULL, mid INTEGER NOT NULL, id TEXT NOT NULL,
  PRIMARY KEY(scope_id, seq)) WITHOUT ROWID;
CREATE TABLE aliases(scope_id INTEGER NOT NULL, alias TEXT NOT NULL, mid INTEGER NOT NULL,
  PRIMARY KEY(scope_id, alias)) WITHOUT ROWID;
CREATE INDEX aliases_by_memory ON aliases(mid);
CREATE TABLE recalls(mid INTEGER PRIMARY KEY, recalls INTEGER NOT NULL, last_recalled_at INTEGER NOT NULL);

CREATE TABLE audit(
  tenant_id INTEGER NOT NULL, n INTEGER NOT NULL, at INTEGER NOT NULL, seq INTEGER NOT NULL, operation TEXT NOT NULL,
  agent_id TEXT NOT NULL, principal TEXT NOT NULL, payload_hash TEXT NOT NULL, previous TEXT NOT NULL,
  hash TEXT NOT NULL, PRIMARY KEY(tenant_id, n)) WITHOUT ROWID;
CREATE TABLE audit_parts(
  tenant_id INTEGER NOT NULL, n INTEGER NOT NULL, i INTEGER NOT NULL, memory_id TEXT, payload BLOB, salt BLOB,
  hash TEXT NOT NULL, PRIMARY KEY(tenant_id, n, i)) WITHOUT ROWID;
CREATE INDEX audit_parts_by_memory ON audit_parts(memory_id) WHERE memory_id IS NOT NULL;

CREATE TABLE records(
  tenant_id INTEGER NOT NULL, kind TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, about TEXT,
  PRIMARY KEY(tenant_id, kind, key)) WITHOUT ROWID;
CREATE TABLE record_subjects(
  memory_id TEXT NOT NULL, tenant_id INTEGER NOT NULL, kind TEXT NOT NULL, key TEXT NOT NULL,
  PRIMARY KEY(memory_id, tenant_id, kind, key)) WITHOUT ROWID;

-- One table of vectors per embedder generation, so that a new one is filled beside the old and switched at once.
CREATE TABLE vectors_1(vid INTEGER PRIMARY KEY AUTOINCREMENT, data BLOB);
""")
    db.execute("INSERT INTO meta VALUES('store_id', ?), ('generation', 1)", (str(uuid.uuid4()),))


def m002_add_graph(db: apsw.Connection) -> None:
    db.execute("""
-- A `key` is a name as it is compared when the graph is walked.
CREATE TABLE triples(
  tid INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, scope_id INTEGER NOT NULL, subject TEXT NOT NULL,
  predicate TEXT NOT NULL, object TEXT NOT NULL, subject_key TEXT NOT NULL, object_key TEXT NOT NULL,
  valid_from INTEGER NOT NULL, valid_to INTEGER, confidence REAL NOT NULL, provenance TEXT, asserted_by TEXT NOT NULL,
  memory_id TEXT);
CREATE INDEX triples_by_subject ON triples(scope_id, subject_key, predicate, valid_from, valid_to);
CREATE INDEX triples_by_object ON triples(scope_id, object_key, valid_from, valid_to);
CREATE INDEX triples_by_memory ON triples(memory_id) WHERE memory_id IS NOT NULL;

-- Derived from memories: what each refers to (kind 0, an id or alias) and what it is about (kind 1, a key).
CREATE TABLE links(
  scope_id INTEGER NOT NULL, kind INTEGER NOT NULL, target TEXT NOT NULL, mid INTEGER NOT NULL,
  PRIMARY KEY(scope_id, kind, target, mid)) WITHOUT ROWID;
CREATE INDEX links_by_memory ON links(mid);
""")
    from commonplace.stores.sqlite.graph import rebuild_links  # which reads tables by way of this module

    rebuild_links(db)


def m003_index_worth(db: apsw.Connection) -> None:
    # All that counting a scope and ordering it by worth look at, so that neither reads the rows themselves.
    db.execute("CREATE INDEX memories_by_worth ON memories(scope_id, created_at, status, importance, expires_at)")


def m004_index_shared(db: apsw.Connection) -> None:
    # What others may be told is little of what there is, and they ask for nothing else.
    db.execute("CREATE INDEX memories_shared ON memories(scope_id) WHERE privacy IS NOT NULL")


def m005_note_late_vectors(db: apsw.Connection) -> None:
    # A vector that is made after its row changes neither the row nor its sequence, which the past is read by: this is
    # how segments hear of it.
    db.execute("""
CREATE TABLE late_vectors(mid INTEGER PRIMARY KEY, scope_id INTEGER NOT NULL, seq INTEGER NOT NULL);
CREATE INDEX late_vectors_by_change ON late_vectors(scope_id, seq);
""")


def m006_index_merged(db: apsw.Connection) -> None:
    # An erasure asks for every memory it takes what was merged into that one. In the order that answers have, without
    # which the planner prefers to walk the whole scope by time.
    db.execute(
        "CREATE INDEX memories_merged ON memories(scope_id, merged_into, created_at, id) WHERE merged_into IS NOT NULL"
    )


def m007_add_tokens(db: apsw.Connection) -> None:
    # Of vectors made before there are none; a reindex makes them. `vector_cells` says what is in them.
    for (table,) in db.execute("SELECT name FROM sqlite_schema WHERE name GLOB 'vectors_[0-9]*'").fetchall():
        db.execute(f"ALTER TABLE {table} ADD COLUMN tokens BLOB")


def m008_add_second_vectors(db: apsw.Connection) -> None:
    # Of an embedder beside the store's own, by the same numbers. Empty unless someone has asked for one. It has no
    # tokens: the column is there so that both kinds of tables are read alike.
    db.execute("CREATE TABLE IF NOT EXISTS second_vectors(vid INTEGER PRIMARY KEY, data BLOB NOT NULL, tokens BLOB)")


def m009_guard_ledger(db: apsw.Connection) -> None:
    # No statement of ours changes or removes an entry, and no mistake of anyone's should. Whoever means to can drop
    # these; `doctor` then misses them, and signed heads show the rest. A replacement deletes without asking the trigger
    # for deletions, so inserting over an entry is refused by itself. Payloads may be erased, and nothing else.
    never = "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only: {}'); END"
    taken = "SELECT 1 FROM audit WHERE tenant_id = NEW.tenant_id AND n = NEW.n"
    erases = (
        "NEW.tenant_id = OLD.tenant_id AND NEW.n = OLD.n AND NEW.i = OLD.i AND NEW.hash = OLD.hash "
        "AND NEW.memory_id IS NULL AND NEW.payload IS NULL AND NEW.salt IS NULL"
    )
    changed, removed = never.format("an entry is never changed"), never.format("an entry is never removed")
    db.execute(f"""
CREATE TRIGGER audit_never_changed BEFORE UPDATE ON audit {changed};
CREATE TRIGGER audit_never_removed BEFORE DELETE ON audit {removed};
CREATE TRIGGER audit_never_replaced BEFORE INSERT ON audit WHEN EXISTS ({taken}) {changed};
CREATE TRIGGER audit_parts_only_erased BEFORE UPDATE ON audit_parts WHEN NOT ({erases})
  {never.format("a payload is erased or stays as it is")};
CREATE TRIGGER audit_parts_never_removed BEFORE DELETE ON audit_parts {removed};
""")


#: What a record's document says of its status; a damaged one says nothing, and can still be replaced or dropped.
RECORD_STATUS = "CASE WHEN json_valid(value) THEN json_extract(value, '$.status') END"


def m010_index_record_status(db: apsw.Connection) -> None:
    # Of many reviews few are pending, and those are listed page by page in the order of their keys.
    db.execute(f"CREATE INDEX records_by_status ON records(tenant_id, kind, {RECORD_STATUS}, key)")


MIGRATIONS: tuple[Migration, ...] = (
    m001_create_tables,
    m002_add_graph,
    m003_index_worth,
    m004_index_shared,
    m005_note_late_vectors,
    m006_index_merged,
    m007_add_tokens,
    m008_add_second_vectors,
    m009_guard_ledger,
    m010_index_record_status,
)
VERSION = len(MIGRATIONS)
