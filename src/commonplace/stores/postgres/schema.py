"""The tables, and the numbered steps that made them. A step, once released, is never edited.

What is searched, `postings` and `parts_N`, is keyed by scope first, which is one agent of one tenant, and partitioned
by hash of it; memories, versions, recalls, vectors and statements are keyed by numbers of their own. Names that may be
long are indexed by their digest: an index row of PostgreSQL holds no more than 2.7 kB.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from commonplace.stores.row_format import STORED_FIELDS

if TYPE_CHECKING:
    from commonplace.stores.postgres.connections import Session

#: Every table of a store, as a pattern: those of an embedder have its generation in their names, and what is searched
#: has partitions.
TABLES = (
    r"^(migrations|meta|tenants|scopes|memories|versions|erasures|aliases|recalls|audit|audit_parts|clock_leaps"
    r"|records|record_subjects|triples|links|second_vectors|vector_indexes|vectors_[0-9]+"
    r"|(postings|parts_[0-9]+|second_parts)(_p[0-9]+)?)$"
)

#: Of each table that is searched, by hash of the scope. A table that was made with another number keeps it.
PARTITIONS = 16

_TYPES = {
    "seq": "bigint NOT NULL", "version": "integer NOT NULL", "confidence": "double precision NOT NULL",
    "importance": "double precision", "created_at": "bigint NOT NULL", "updated_at": "bigint NOT NULL",
    "expires_at": "bigint", "event_time": "bigint", "demotion": "double precision NOT NULL", "salt": "bytea NOT NULL",
    **dict.fromkeys(("tags", "metadata", "provenance", "privacy", "supersedes", "aliases"), "json"),
    **dict.fromkeys(("id", "status", "type", "kind", "content", "content_hash"), 'text COLLATE "C" NOT NULL'),
}  # fmt: skip
_TEXT = 'text COLLATE "C"'  # compared as code points, like everywhere else
_STORED = ", ".join(f"{name} {_TYPES.get(name, _TEXT)}" for name in STORED_FIELDS)
#: The columns of one version of a memory, in both `memories` (current) and `versions` (earlier).
VERSION_COLUMNS = ("vid", "scope_id", *STORED_FIELDS, "terms")
_VERSION_DDL = f"vid bigint NOT NULL, scope_id integer NOT NULL, {_STORED}, terms bytea NOT NULL"


def m001_create_tables(db: Session) -> None:
    db.execute(f"""
CREATE TABLE meta(key {_TEXT} PRIMARY KEY, number bigint, name {_TEXT});
CREATE TABLE tenants(
  id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name {_TEXT} NOT NULL UNIQUE, seq bigint NOT NULL DEFAULT 0,
  at bigint NOT NULL DEFAULT 0, audit_n bigint NOT NULL DEFAULT 0, audit_hash {_TEXT} NOT NULL DEFAULT '')
  WITH (fillfactor = 50);
-- What BM25 needs of a scope is counted here as it changes: live memories, and the words in them.
CREATE TABLE scopes(
  id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, tenant_id integer NOT NULL, agent_id {_TEXT} NOT NULL,
  documents bigint NOT NULL DEFAULT 0, words bigint NOT NULL DEFAULT 0) WITH (fillfactor = 50);
CREATE UNIQUE INDEX scopes_by_agent ON scopes(tenant_id, md5(agent_id));
-- Numbers of memories and versions, taken in blocks by whoever holds a tenant's lock: within a tenant they ascend.
CREATE SEQUENCE numbers INCREMENT BY 256;

CREATE TABLE memories(mid bigint PRIMARY KEY, {_VERSION_DDL});
CREATE UNIQUE INDEX memories_by_id ON memories(id);
CREATE INDEX memories_by_time ON memories(scope_id, created_at, id);
CREATE INDEX memories_by_user ON memories(scope_id, md5(user_id)) WHERE user_id IS NOT NULL;
CREATE INDEX memories_by_session ON memories(scope_id, md5(session_id), mid) WHERE session_id IS NOT NULL;
CREATE INDEX memories_by_speaker ON memories(scope_id, md5(speaker)) WHERE speaker IS NOT NULL AND status = 'live';
CREATE INDEX memories_superseding ON memories(scope_id) WHERE supersedes IS NOT NULL;
CREATE INDEX memories_shared ON memories(scope_id) WHERE privacy IS NOT NULL;
CREATE INDEX memories_merged ON memories(scope_id, md5(merged_into), created_at, id) WHERE merged_into IS NOT NULL;
CREATE INDEX memories_by_vid ON memories(vid);
CREATE TABLE versions(mid bigint NOT NULL, ended_seq bigint NOT NULL, {_VERSION_DDL});
CREATE INDEX versions_by_memory ON versions(mid, version);
CREATE INDEX versions_by_scope ON versions(scope_id, ended_seq);
CREATE INDEX versions_by_vid ON versions(vid);
CREATE TABLE erasures(scope_id integer, seq bigint, mid bigint NOT NULL, id {_TEXT} NOT NULL,
  PRIMARY KEY(scope_id, seq));
CREATE TABLE aliases(scope_id integer NOT NULL, alias {_TEXT} NOT NULL, mid bigint NOT NULL);
CREATE UNIQUE INDEX aliases_by_name ON aliases(scope_id, md5(alias));
CREATE INDEX aliases_by_memory ON aliases(mid);
CREATE TABLE recalls(mid bigint PRIMARY KEY, recalls bigint NOT NULL, last_recalled_at bigint NOT NULL);

-- The words of live memories: `code` (commonplace.stores.text.code) is read from the index alone.
CREATE TABLE postings(scope_id integer, term bigint, mid bigint, code smallint NOT NULL,
  CONSTRAINT postings_by_term PRIMARY KEY(scope_id, term, mid) INCLUDE (code));

CREATE TABLE audit(
  tenant_id integer, n bigint, at bigint NOT NULL, seq bigint NOT NULL, operation {_TEXT} NOT NULL,
  agent_id {_TEXT} NOT NULL, principal {_TEXT} NOT NULL, payload_hash {_TEXT} NOT NULL, previous {_TEXT} NOT NULL,
  hash {_TEXT} NOT NULL, PRIMARY KEY(tenant_id, n));
CREATE TABLE audit_parts(
  tenant_id integer, n bigint, i integer, memory_id {_TEXT}, payload bytea, salt bytea, hash {_TEXT} NOT NULL,
  PRIMARY KEY(tenant_id, n, i));
CREATE INDEX audit_parts_by_memory ON audit_parts(tenant_id, md5(memory_id)) WHERE memory_id IS NOT NULL;
-- Entries before which the clock was set back: between two of them, times never decrease.
CREATE TABLE clock_leaps(tenant_id integer, n bigint, PRIMARY KEY(tenant_id, n));

CREATE TABLE records(tenant_id integer NOT NULL, kind {_TEXT} NOT NULL, key {_TEXT} NOT NULL, value json NOT NULL,
  about json);
CREATE UNIQUE INDEX records_by_key ON records(tenant_id, kind, md5(key));
CREATE TABLE record_subjects(tenant_id integer NOT NULL, memory_id {_TEXT} NOT NULL, kind {_TEXT} NOT NULL,
  key {_TEXT} NOT NULL);
CREATE INDEX record_subjects_by_memory ON record_subjects(tenant_id, md5(memory_id));
CREATE INDEX record_subjects_by_record ON record_subjects(tenant_id, kind, md5(key));

-- A `key` of a statement is a name as it is compared when the graph is walked.
CREATE TABLE triples(
  tid bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id {_TEXT} NOT NULL UNIQUE, scope_id integer NOT NULL,
  subject {_TEXT} NOT NULL, predicate {_TEXT} NOT NULL, object {_TEXT} NOT NULL, subject_key {_TEXT} NOT NULL,
  object_key {_TEXT} NOT NULL, valid_from bigint NOT NULL, valid_to bigint, confidence double precision NOT NULL,
  provenance {_TEXT}, asserted_by {_TEXT} NOT NULL, memory_id {_TEXT});
CREATE INDEX triples_by_subject ON triples(scope_id, md5(subject_key), valid_from);
CREATE INDEX triples_by_object ON triples(scope_id, md5(object_key), valid_from);
CREATE INDEX triples_by_memory ON triples(md5(memory_id)) WHERE memory_id IS NOT NULL;
-- Derived from memories: what each refers to (kind 0, an id or alias) and what it is about (kind 1, a key).
CREATE TABLE links(scope_id integer NOT NULL, kind smallint NOT NULL, target {_TEXT} NOT NULL, mid bigint NOT NULL);
CREATE UNIQUE INDEX links_by_target ON links(scope_id, kind, md5(target), mid);
CREATE INDEX links_by_memory ON links(mid);

CREATE TABLE second_vectors(vid bigint PRIMARY KEY, data bytea NOT NULL);
-- Scopes whose vectors are so many that a table of parts has a graph of them.
CREATE TABLE vector_indexes(parts {_TEXT}, scope_id integer, ready boolean NOT NULL, PRIMARY KEY(parts, scope_id));
""")
    db.execute(f"CREATE TABLE vectors_1({VECTOR_COLUMNS})")
    db.execute("INSERT INTO meta(key, name) VALUES('store_id', %s)", (str(uuid.uuid4()),))
    db.execute("INSERT INTO meta(key, number) VALUES('generation', 1)")


#: Of one table per embedder generation, so that a new one is filled beside the old and takes its place at once.
#: `vector_cells` says what is in them. A table `parts_N` beside it has the vectors of live memories, for the search.
VECTOR_COLUMNS = "vid bigint PRIMARY KEY, data bytea, tokens bytea"


def create_parts(db: Session, name: str, dimension: int) -> None:
    """The searchable vectors of live memories, one row for each part of a memory."""
    _create_partitioned(db, name, _parts_columns(dimension))


def _parts_columns(dimension: int) -> str:
    vector = f"embedding halfvec({dimension}) NOT NULL"
    return f"scope_id integer, mid bigint, part integer, {vector}, PRIMARY KEY(scope_id, mid, part)"


def _create_partitioned(db: Session, name: str, columns: str) -> None:
    remainders = [f"FOR VALUES WITH (MODULUS {PARTITIONS}, REMAINDER {n})" for n in range(PARTITIONS)]
    pieces = [f"CREATE TABLE {name}_p{n} PARTITION OF {name} {values}" for n, values in enumerate(remainders)]
    db.execute("; ".join([f"CREATE TABLE {name}({columns}) PARTITION BY HASH (scope_id)", *pieces]))


def m002_guard_ledger(db: Session) -> None:
    # No statement of ours changes or removes an entry, and no mistake of anyone's should. Whoever owns the tables can
    # drop these; the doctor then misses them, and signed heads show the rest. Payloads may be erased, and nothing else.
    db.execute("""
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'the ledger is append-only: %', TG_ARGV[0]; END $$;
CREATE TRIGGER audit_never_changed BEFORE UPDATE ON audit
  FOR EACH ROW EXECUTE FUNCTION refuse_change('an entry is never changed');
CREATE TRIGGER audit_never_removed BEFORE DELETE OR TRUNCATE ON audit
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change('an entry is never removed');
CREATE TRIGGER audit_parts_only_erased BEFORE UPDATE ON audit_parts FOR EACH ROW
  WHEN (NOT (NEW.tenant_id = OLD.tenant_id AND NEW.n = OLD.n AND NEW.i = OLD.i AND NEW.hash = OLD.hash
    AND NEW.memory_id IS NULL AND NEW.payload IS NULL AND NEW.salt IS NULL))
  EXECUTE FUNCTION refuse_change('a payload is erased or stays as it is');
CREATE TRIGGER audit_parts_never_removed BEFORE DELETE OR TRUNCATE ON audit_parts
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change('an entry is never removed');
""")


#: The triggers that keep the ledger as it is.
GUARDS = ("audit_never_changed", "audit_never_removed", "audit_parts_never_removed", "audit_parts_only_erased")


def m003_index_record_status(db: Session) -> None:
    # Of many reviews few are pending, and those are listed page by page in the order of their keys.
    db.execute("CREATE INDEX records_by_status ON records(tenant_id, kind, left(value ->> 'status', 64))")


def m004_partition_what_is_searched(db: Session) -> None:
    # Postings and vectors are most of what is kept, and only ever asked for by scope. In pieces they are vacuumed and
    # moved one at a time. Graphs are made anew, beside whoever reads.
    db.execute("ALTER INDEX postings_by_term RENAME TO postings_pkey")
    key = "CONSTRAINT postings_by_term PRIMARY KEY(scope_id, term, mid) INCLUDE (code)"
    _partition(db, "postings", f"scope_id integer, term bigint, mid bigint, code smallint NOT NULL, {key}")
    for name, dimension in db.rows(
        "SELECT c.relname::text, a.atttypmod FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid "
        "WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace AND a.attname = 'embedding' "
        "AND c.relname ~ '^(parts_[0-9]+|second_parts)$'"
    ):
        _partition(db, name, _parts_columns(dimension))
    db.execute("DELETE FROM vector_indexes")


def _partition(db: Session, name: str, columns: str) -> None:
    """The same rows in a table of partitions."""
    db.execute(f"ALTER TABLE {name} RENAME TO whole")
    db.execute(f"ALTER TABLE whole DROP CONSTRAINT {name}_pkey")  # its name is taken up again
    _create_partitioned(db, name, columns)
    db.execute(f"INSERT INTO {name} SELECT * FROM whole")
    db.execute("DROP TABLE whole")


MIGRATIONS = (m001_create_tables, m002_guard_ledger, m003_index_record_status, m004_partition_what_is_searched)
VERSION = len(MIGRATIONS)
