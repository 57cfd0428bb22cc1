"""Merkle trees as RFC 6962 defines them (§2.1): hashing, roots, inclusion paths and consistency proofs. Knows no log.

Leaves are counted from 0 here, as the RFC counts them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence

EMPTY_ROOT = hashlib.sha256().digest()
#: Leaves whose subtree is kept as one hash. A power of two: other ranges are no subtrees of the RFC's.
BLOCK = 1024


def leaf_hash(data: bytes) -> bytes:
    return hashlib.sha256(b"\x00" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + left + right).digest()


class Frontier:
    """A tree that only grows: the roots of its complete subtrees, largest first. To append takes O(log n) at most."""

    def __init__(self, leaves: Iterable[bytes] = ()) -> None:
        self.size = 0
        self._peaks: list[bytes] = []
        for leaf in leaves:
            self.append(leaf)

    def append(self, leaf: bytes) -> None:
        size, node = self.size, leaf
        while size & 1:  # as many complete subtrees of equal size meet as the number ends in ones
            node = node_hash(self._peaks.pop(), node)
            size >>= 1
        self._peaks.append(node)
        self.size += 1

    def root(self) -> bytes:
        if not self._peaks:
            return EMPTY_ROOT
        node = self._peaks[-1]
        for peak in reversed(self._peaks[:-1]):
            node = node_hash(peak, node)
        return node


class MerkleTree:
    """The hashes of complete blocks and of every complete subtree above them. Leaves are handed in where they are
    needed (`loose`: those of a block by its number), so that a tree of a million leaves takes 60 KB."""

    def __init__(self) -> None:
        self._levels: list[list[bytes]] = [[]]

    @property
    def blocks(self) -> int:
        return len(self._levels[0])

    def add_block(self, leaves: Sequence[bytes]) -> None:
        assert len(leaves) == BLOCK
        node, level = Frontier(leaves).root(), 0
        while True:
            if level == len(self._levels):
                self._levels.append([])
            nodes = self._levels[level]
            nodes.append(node)
            if len(nodes) % 2:
                return
            node, level = node_hash(nodes[-2], nodes[-1]), level + 1

    def loose_blocks(self, size: int, leaf: int | None = None) -> set[int]:
        """The blocks whose leaves are needed for the root of the first `size`, or for the path to one of them."""
        wanted = set() if leaf is None else {leaf // BLOCK}
        return wanted | ({size // BLOCK} if size % BLOCK else set())

    def root(self, size: int, loose: Mapping[int, Sequence[bytes]]) -> bytes:
        return self._subtree(0, size, loose) if size else EMPTY_ROOT

    def inclusion_path(self, leaf: int, size: int, loose: Mapping[int, Sequence[bytes]]) -> list[bytes]:
        """PATH(m, D[n]) of §2.1.1, from the leaf up."""
        path, low, high = [], 0, size
        while high - low > 1:
            middle = low + _split(high - low)
            if leaf < middle:
                path.append(self._subtree(middle, high, loose))
                high = middle
            else:
                path.append(self._subtree(low, middle, loose))
                low = middle
        return path[::-1]

    def consistency_path(self, first: int, second: int, loose: Mapping[int, Sequence[bytes]]) -> list[bytes]:
        """PROOF(m, D[n]) of §2.1.2: that the first `first` leaves of `second` are what they were."""
        if first in (0, second):
            return []
        path, low, high, whole = [], 0, second, True
        while first != high:
            middle = low + _split(high - low)
            if first <= middle:
                path.append(self._subtree(middle, high, loose))
                high = middle
            else:
                path.append(self._subtree(low, middle, loose))
                low, whole = middle, False
        if not whole:  # otherwise it is the root of the first tree, which whoever asks has
            path.append(self._subtree(low, high, loose))
        return path[::-1]

    def _subtree(self, low: int, high: int, loose: Mapping[int, Sequence[bytes]]) -> bytes:
        size, block = high - low, low // BLOCK
        if size >= BLOCK and size & (size - 1) == 0 and high <= self.blocks * BLOCK:
            return self._levels[(size // BLOCK).bit_length() - 1][low // size]
        if high <= (block + 1) * BLOCK:
            return Frontier(loose[block][low - block * BLOCK : high - block * BLOCK]).root()
        middle = low + _split(size)
        return node_hash(self._subtree(low, middle, loose), self._subtree(middle, high, loose))


def _split(size: int) -> int:
    """The largest power of two that is smaller."""
    return 1 << (size - 1).bit_length() - 1


def root_by_inclusion(leaf: bytes, position: int, size: int, path: Sequence[bytes]) -> bytes | None:
    """The root that a path leads to from a leaf; None for a path that cannot be one (RFC 9162 §2.1.3.2)."""
    if not 0 <= position < size:
        return None
    node, last = leaf, size - 1
    for sibling in path:
        if not last:
            return None
        if position & 1 or position == last:
            node = node_hash(sibling, node)
            while not position & 1 and position:
                position, last = position >> 1, last >> 1
        else:
            node = node_hash(node, sibling)
        position, last = position >> 1, last >> 1
    return node if not last else None


def is_consistent(first: int, second: int, first_root: bytes, second_root: bytes, path: Sequence[bytes]) -> bool:
    """Whether a proof shows that one tree is the beginning of the other (RFC 9162 §2.1.4.2)."""
    if first == second:
        return not path and first_root == second_root
    if not 0 < first < second:
        return first == 0 and not path and first_root == EMPTY_ROOT
    nodes = [first_root, *path] if first & (first - 1) == 0 else [*path]
    if not nodes:
        return False
    position, last = first - 1, second - 1
    while position & 1:
        position, last = position >> 1, last >> 1
    old = new = nodes[0]
    for node in nodes[1:]:
        if not last:
            return False
        if position & 1 or position == last:
            old, new = node_hash(node, old), node_hash(node, new)
            while not position & 1 and position:
                position, last = position >> 1, last >> 1
        else:
            new = node_hash(new, node)
        position, last = position >> 1, last >> 1
    return not last and old == first_root and new == second_root
