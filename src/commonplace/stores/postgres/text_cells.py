"""Text as PostgreSQL takes it, which has no character 0: that one and the next are escaped, so that order stays.

Every text goes through here by way of psycopg's adapters, and JSON on its way into a row.
"""

from __future__ import annotations

import re
from typing import Any

import psycopg
from psycopg.adapt import Buffer, Dumper, Loader
from psycopg.pq import Format

_ESCAPED = re.compile("\x01[\x01\x02]")
# Of JSON's escapes those that are not themselves behind a backslash.
_JSON_CONTROL = re.compile(r"(?<!\\)((?:\\\\)*)\\u000([01])")
_JSON_ESCAPED = re.compile(r"(?<!\\)((?:\\\\)*)\\u0001\\u000([12])")


def encode_text(text: str) -> str:
    if "\0" in text or "\x01" in text:
        return text.replace("\x01", "\x01\x02").replace("\0", "\x01\x01")
    return text


def decode_text(text: str) -> str:
    if "\x01" in text:
        return _ESCAPED.sub(lambda pair: "\0" if pair.group()[1] == "\x01" else "\x01", text)
    return text


def encode_json(text: str) -> str:
    """Of JSON text: what its strings hold, as `encode_text`."""
    if "\\u000" in text:
        return _JSON_CONTROL.sub(lambda m: rf"{m[1]}\u0001\u000{int(m[2]) + 1}", text)
    return text


def decode_json(text: str) -> str:
    if "\\u0001" in text:
        return _JSON_ESCAPED.sub(lambda m: rf"{m[1]}\u000{int(m[2]) - 1}", text)
    return text


class _TextDumper(Dumper):
    """Of no declared type, so that the server takes it for what the column is."""

    def dump(self, obj: str) -> bytes:
        return encode_text(obj).encode()


class _TextLoader(Loader):
    def load(self, data: Buffer) -> str:
        return decode_text(str(data, "utf-8"))


class _BinaryTextLoader(_TextLoader):
    format = Format.BINARY


class _JsonLoader(Loader):
    def load(self, data: Buffer) -> str:
        return decode_json(str(data, "utf-8"))


class _BinaryJsonLoader(_JsonLoader):
    format = Format.BINARY


def register(connection: psycopg.Connection[Any]) -> None:
    adapters = connection.adapters
    adapters.register_dumper(str, _TextDumper)
    for text_loader in (_TextLoader, _BinaryTextLoader):
        adapters.register_loader("text", text_loader)
    for json_loader in (_JsonLoader, _BinaryJsonLoader):
        adapters.register_loader("json", json_loader)
