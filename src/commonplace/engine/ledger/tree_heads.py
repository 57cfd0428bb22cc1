"""Signed tree heads of the ledger, and the proofs that go with them: RFC 6962 over the hashes of its entries.

A leaf is the hash of an entry's header, 32 bytes, which commits to all of the entry and to those before it. Nothing of
this is kept: complete blocks of the tree are remembered while the process lives, and made anew from the entries
otherwise, so appending to the ledger costs nothing more than it did.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from commonplace.engine.checks import require_role
from commonplace.engine.core import Core
from commonplace.engine.ledger import merkle
from commonplace.engine.ledger.merkle import MerkleTree, leaf_hash
from commonplace.engine.peers.identity import Identity
from commonplace.stores.base import Primary
from commonplace.wire import keys
from commonplace.wire.errors import Unavailable, ValidationError
from commonplace.wire.record import Principal

_BLOCKS_AT_ONCE = 16
_SIGNATURE = "signature"

Document = dict[str, Any]
Leaves = Mapping[int, Sequence[bytes]]


@dataclass(slots=True, frozen=True)
class TreeHead:
    """What the ledger was when it was signed: so many entries, with that root."""

    tenant: str
    size: int
    root: str
    at: int
    key_id: str
    signature: str = ""

    def signed(self, private: str) -> Document:
        document = {name: value for name, value in asdict(self).items() if name != _SIGNATURE}
        return document | {_SIGNATURE: keys.sign(private, keys.bytes_of(document))}


class TreeHeads:
    def __init__(self, core: Core, identity: Identity) -> None:
        self._core = core
        self._identity = identity
        self._trees: dict[str, _CachedTree] = {}

    async def head(self, who: Principal) -> Document:
        """{tenant, size, root, at, key_id, signature}, of what is written by now."""
        require_role(who, "reviewer")
        return await self.sign(who.tenant)

    async def sign(self, tenant: str) -> Document:
        size = await self._size(tenant)
        tree, loose = await self._tree(tenant, {size})
        root = tree.root(size, loose).hex()
        pair = await asyncio.to_thread(self._identity.keypair)
        return TreeHead(tenant, size, root, self._core.clock(), keys.fingerprint(pair.public)).signed(pair.private)

    async def proof(self, who: Principal, entry: int, size: int | None = None) -> Document:
        """{entry, size, leaf_hash, path, root}: that the entry (the first is 1) is in the tree of that size."""
        require_role(who, "reviewer")
        if entry < 1:
            raise ValidationError(f"entry must be at least 1, not {entry}", field="entry")
        size = await self._checked(who.tenant, "size", size, entry)
        at = entry - 1
        tree, loose = await self._tree(who.tenant, {size}, at)
        leaf = loose[at // merkle.BLOCK][at % merkle.BLOCK]
        path = [node.hex() for node in tree.inclusion_path(at, size, loose)]
        root = tree.root(size, loose).hex()
        return {"entry": entry, "size": size, "leaf_hash": leaf.hex(), "path": path, "root": root}

    async def consistency(self, who: Principal, first: int, second: int | None = None) -> Document:
        """{from, to, from_root, to_root, path}: that the tree of one size is the beginning of the other's."""
        require_role(who, "reviewer")
        if first < 0:
            raise ValidationError(f"from must be at least 0, not {first}", field="from")
        second = await self._checked(who.tenant, "to", second, first)
        tree, loose = await self._tree(who.tenant, {first, second})
        path = [node.hex() for node in tree.consistency_path(first, second, loose)]
        roots = {"from_root": tree.root(first, loose).hex(), "to_root": tree.root(second, loose).hex()}
        return {"from": first, "to": second, **roots, "path": path}

    def key(self, who: Principal) -> Document:
        """{key_id, public_key, algorithm, retired}: what heads are signed with, and were before."""
        require_role(who, "reader")
        known = self._identity.to_wire()
        retired = [{"key_id": old["fingerprint"], "public_key": old["public_key"]} for old in known["retired"]]
        own = {"key_id": known["fingerprint"], "public_key": known["public_key"], "algorithm": known["algorithm"]}
        return own | {"retired": retired}

    def public_keys(self) -> list[str]:
        """Every key that ever signed a head here."""
        return [self._identity.keypair().public, *self._identity.retired()]

    async def _size(self, tenant: str) -> int:
        return (await self._core.primary.audit_head(tenant))[0]

    async def _checked(self, tenant: str, name: str, size: int | None, least: int) -> int:
        there = await self._size(tenant)
        size = there if size is None else size
        if size > there:
            raise ValidationError(f"{name} must be at most {there}: the ledger has no more entries", field=name)
        if size < least:
            raise ValidationError(f"{name} must be at least {least}, not {size}", field=name)
        return size

    async def _tree(self, tenant: str, sizes: set[int], leaf: int | None = None) -> tuple[MerkleTree, Leaves]:
        held = self._trees.setdefault(tenant, _CachedTree())
        async with held.lock:
            try:
                return await held.grown(self._core.primary, tenant, sizes, leaf)
            except (ValueError, IndexError):  # a hash that is none, or fewer than the tenant's own count says
                raise Unavailable(
                    "the ledger lacks entries or holds damaged ones; `commonplace audit verify` says which"
                ) from None


@dataclass(slots=True)
class _CachedTree:
    """The complete blocks of one tenant's tree."""

    tree: MerkleTree = field(default_factory=MerkleTree)
    last: str = ""  # the hash of the entry that ends them, which commits to every one before
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def grown(
        self, store: Primary, tenant: str, sizes: set[int], leaf: int | None
    ) -> tuple[MerkleTree, dict[int, list[bytes]]]:
        """The tree up to the largest size, and the leaves that its answers need besides."""
        block = merkle.BLOCK
        covered = self.tree.blocks * block
        # A store that was restored from a backup, or rewritten, has another chain: what is remembered is of the old.
        if covered and await store.audit_hashes(tenant, after=covered - 1, limit=1) != [self.last]:
            self.tree, self.last, covered = MerkleTree(), "", 0
        while covered + block <= max(sizes):
            count = min((max(sizes) - covered) // block, _BLOCKS_AT_ONCE) * block
            hashes = await store.audit_hashes(tenant, after=covered, limit=count)
            await asyncio.to_thread(self._add_blocks, hashes, count)
            covered += count
        loose: dict[int, list[bytes]] = {}
        for size in sizes:
            for number in self.tree.loose_blocks(size, leaf):
                hashes = await store.audit_hashes(tenant, after=number * block, limit=block)
                loose[number] = [_leaf(hash) for hash in hashes]
                if len(hashes) < min(block, max(sizes) - number * block):
                    raise IndexError(number)
        return self.tree, loose

    def _add_blocks(self, hashes: Sequence[str], count: int) -> None:
        if len(hashes) != count:
            raise IndexError(len(hashes))
        for start in range(0, count, merkle.BLOCK):
            some = hashes[start : start + merkle.BLOCK]
            self.tree.add_block([_leaf(hash) for hash in some])
            self.last = some[-1]


def _leaf(hash: str) -> bytes:
    return leaf_hash(bytes.fromhex(hash))
