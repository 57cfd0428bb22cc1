"""RFC 6962 §2.1 word for word, without a thought for speed: what the real tree is compared with."""

from __future__ import annotations

from hashlib import sha256


def mth(data: list[bytes]) -> bytes:
    if not data:
        return sha256(b"").digest()
    if len(data) == 1:
        return sha256(b"\x00" + data[0]).digest()
    k = split(len(data))
    return sha256(b"\x01" + mth(data[:k]) + mth(data[k:])).digest()


def split(n: int) -> int:
    k = 1
    while k * 2 < n:
        k *= 2
    return k


def path(m: int, data: list[bytes]) -> list[bytes]:
    if len(data) == 1:
        return []
    k = split(len(data))
    return [*path(m, data[:k]), mth(data[k:])] if m < k else [*path(m - k, data[k:]), mth(data[:k])]


def proof(m: int, data: list[bytes]) -> list[bytes]:
    return subproof(m, data, True)


def subproof(m: int, data: list[bytes], whole: bool) -> list[bytes]:
    n = len(data)
    if m == n:
        return [] if whole else [mth(data)]
    k = split(n)
    if m <= k:
        return [*subproof(m, data[:k], whole), mth(data[k:])]
    return [*subproof(m - k, data[k:], False), mth(data[:k])]
