"""The ledger written down elsewhere: its headers and signed heads, one to a line, in a file that is only appended to.

Headers alone: nothing of a memory is in them, so what is erased later need not be sought where everything is kept.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from commonplace.engine.core import Core
from commonplace.engine.ledger import audit
from commonplace.engine.ledger.tree_heads import TreeHeads
from commonplace.stores.base import AuditEntry
from commonplace.wire import strict_json
from commonplace.wire.durable import sync_file
from commonplace.wire.errors import Conflict, Unavailable
from commonplace.wire.words import plural

_AT_ONCE = 1000
_TAIL = 65_536  # bytes, in which the last entry and the last head are

Document = dict[str, Any]


def file_name(tenant: str) -> str:
    return f"{quote(tenant, safe='')}.jsonl"


async def export(core: Core, heads: TreeHeads, tenant: str, path: Path) -> int:
    """Append what the file does not have yet, and a head over all of it; how many entries that were. Refused where the
    file knows of a ledger that this one is not."""
    last = await asyncio.to_thread(_last_entry, path)
    done = 0 if last is None else last.n
    size = (await core.primary.audit_head(tenant))[0]
    if last is not None:
        if size < last.n:
            raise Conflict(
                f"{path} has {plural(last.n, 'entry')} and the ledger {size}: the ledger was cut off, or another store "
                f"is here; `commonplace audit verify --head {path}` says more"
            )
        if await core.primary.audit_hashes(tenant, after=last.n - 1, limit=1) != [last.hash]:
            raise Conflict(
                f"entry {last.n} is not the one in {path}: the ledger was rewritten, or another store is here; "
                f"`commonplace audit verify --head {path}` says from where on"
            )
    written = 0
    async for batch in batches(core, heads, tenant, done):
        await asyncio.to_thread(_append, path, batch)
        written += sum("n" in document for document in batch)
    return written


async def batches(core: Core, heads: TreeHeads, tenant: str, done: int = 0) -> AsyncIterator[list[Document]]:
    """The headers after so many entries, and with the last of them a head over all; nothing where there are no more."""
    head = await heads.sign(tenant)
    while done < head["size"]:
        batch = await core.primary.audit(tenant, after=done, limit=min(_AT_ONCE, head["size"] - done))
        if not batch:
            raise Unavailable("the ledger lacks entries; `commonplace audit verify` says which")
        done += len(batch)
        lines: list[Document] = [audit.header(entry) for entry in batch]
        yield lines if done < head["size"] else [*lines, head]


def as_lines(documents: Iterable[Document]) -> bytes:
    return "".join(f"{strict_json.dumps(document)}\n" for document in documents).encode("utf-8", "replace")


def _append(path: Path, documents: Iterable[Document]) -> None:
    data = as_lines(documents)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "ab") as file:
            # A line that a power cut has torn stays as it is, and the next begins on its own.
            file.write(data if _tail(path, 1) in (b"", b"\n") else b"\n" + data)
            file.flush()
            sync_file(file.fileno())
    except OSError as error:
        raise Unavailable(f"cannot append to {path}: {error.strerror or error}") from None


def _tail(path: Path, size: int) -> bytes:
    with path.open("rb") as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(file.tell() - size, 0))
        return file.read()


def _last_entry(path: Path) -> AuditEntry | None:
    """Of the whole lines at the end of the file; None where there is no file or nothing in it."""
    try:
        lines = _tail(path, _TAIL).split(b"\n")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Unavailable(f"cannot read {path}: {error.strerror or error}") from None
    for line in reversed(lines):
        try:
            document = strict_json.decode(line)
        except strict_json.InvalidJson:
            continue
        if isinstance(document, dict) and "n" in document:
            return audit.from_header(document)
    if any(lines):
        raise Conflict(f"{path} holds no entries of a ledger; name another file to export to")
    return None
