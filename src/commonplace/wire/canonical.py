"""Canonical bytes (RFC 8785), hashes over them, and the one minter of ids."""

from __future__ import annotations

import hashlib
import json
import os
import re
import threading
from typing import Any

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\Z")
_UUID_AT_END = re.compile(rf"(?:.*_)?({_UUID.pattern})", re.DOTALL | re.IGNORECASE)


_JSON = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode
_SAFE_INTEGER = 2**53


def canonical(value: Any) -> bytes:
    """The RFC 8785 form: the same document always gives the same bytes."""
    if _is_plain(value):
        try:
            return _JSON(value).encode()  # the same bytes, in a tenth of the time
        except UnicodeEncodeError:
            pass  # half a surrogate pair: refused below, in its own words
    import rfc8785  # seldom needed, and every start would wait for it

    return rfc8785.dumps(value)


def _is_plain(value: Any) -> bool:
    """Whether Python's JSON has no room to differ: numbers are whole and safe, and keys sort alike as UTF-16."""
    kind = type(value)
    if kind is dict:
        for key, held in value.items():
            if type(key) is not str or not key.isascii() or (type(held) is not str and not _is_plain(held)):
                return False
        return True
    if kind is list:
        return all(map(_is_plain, value))
    return kind is str or kind is bool or value is None or (kind is int and -_SAFE_INTEGER < value < _SAFE_INTEGER)


def sha256_hex(*parts: bytes) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def new_salt() -> bytes:
    return os.urandom(16)


def content_hash(content: str, salt: bytes) -> str:
    """Salted, so that once the salt is destroyed the hash says nothing about the content."""
    return sha256_hex(salt, content.encode("utf-8", "surrogatepass"))


class IdMinter:
    """UUIDv7: 48 bits of milliseconds, then a 12-bit counter so that one process mints in order."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last_ms = 0
        self._counter = 0

    def mint(self, now_ms: int) -> str:
        tail = int.from_bytes(os.urandom(8), "big")
        with self._lock:
            if now_ms > self._last_ms:
                self._last_ms = now_ms
                self._counter = tail >> 54  # 10 random bits leave room to count within the millisecond
            else:
                self._counter += 1
                if self._counter > 0xFFF:
                    self._last_ms += 1
                    self._counter = 0
            ms, counter = self._last_ms, self._counter
        value = (ms & 0xFFFFFFFFFFFF) << 80 | 0x7 << 76 | counter << 64 | 0b10 << 62 | tail & (1 << 62) - 1
        text = f"{value:032x}"
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


mint_id = IdMinter().mint


def minted_at(id: str) -> int:
    """When an id of ours was minted, in milliseconds."""
    return int(id[:8] + id[9:13], 16)


def is_uuid(text: str) -> bool:
    return _UUID.match(text) is not None


def uuid_in(ref: str) -> str | None:
    """The id of ours that a reference spells, alone or as `anything_<uuid>`."""
    named = _UUID_AT_END.match(ref)
    return named[1].lower() if named else None
