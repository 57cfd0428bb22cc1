"""Trees against the RFC's own definitions, which `naive_tree` spells out, and its published test vectors."""

from __future__ import annotations

import naive_tree as naive
import pytest
from hypothesis import given, strategies as st

from commonplace.engine.ledger import merkle
from commonplace.engine.ledger.merkle import Frontier, MerkleTree, is_consistent, leaf_hash, root_by_inclusion

#: Of the RFC's own inputs, as its public implementations test them.
INPUTS = [bytes.fromhex(text) for text in ("", "00", "10", "2021", "3031", "40414243", "5051525354555657",
                                           "606162636465666768696a6b6c6d6e6f")]  # fmt: skip
ROOTS = {
    1: "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    2: "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    8: "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merkle, "BLOCK", 4)


def data_of(size: int) -> list[bytes]:
    return [i.to_bytes(4, "big") for i in range(size)]


def tree_of(data: list[bytes]) -> tuple[MerkleTree, dict[int, list[bytes]]]:
    tree, leaves = MerkleTree(), [leaf_hash(d) for d in data]
    blocks = {i: leaves[i * 4 : i * 4 + 4] for i in range((len(data) + 3) // 4)}
    for block in blocks.values():
        if len(block) == 4:
            tree.add_block(block)
    return tree, blocks


def needed(tree: MerkleTree, blocks: dict[int, list[bytes]], size: int, leaf: int | None = None) -> dict:
    """Nothing more than was said to be needed."""
    return {number: blocks[number] for number in tree.loose_blocks(size, leaf)}


def test_the_published_vectors() -> None:
    for size, root in ROOTS.items():
        assert Frontier(leaf_hash(each) for each in INPUTS[:size]).root().hex() == root
    assert Frontier().root().hex() == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


sizes = st.integers(1, 70)


@given(size=sizes, more=st.integers(0, 40))
def test_roots_of_every_beginning(size: int, more: int) -> None:
    data = data_of(size + more)
    tree, blocks = tree_of(data)
    assert tree.root(size, needed(tree, blocks, size)) == naive.mth(data[:size])
    assert Frontier(map(leaf_hash, data[:size])).root() == naive.mth(data[:size])
    assert tree.root(0, {}) == naive.mth([])


@given(size=sizes, more=st.integers(0, 40), at=st.integers(0, 69))
def test_inclusion_paths(size: int, more: int, at: int) -> None:
    at %= size
    data = data_of(size + more)
    tree, blocks = tree_of(data)
    path = tree.inclusion_path(at, size, needed(tree, blocks, size, at))
    root = naive.mth(data[:size])
    assert path == naive.path(at, data[:size])
    assert root_by_inclusion(leaf_hash(data[at]), at, size, path) == root
    assert root_by_inclusion(leaf_hash(b"another"), at, size, path) != root
    for wrong in {at - 1, at + 1, size}:
        assert root_by_inclusion(leaf_hash(data[at]), wrong, size, path) != root
    if path:
        assert root_by_inclusion(leaf_hash(data[at]), at, size, path[:-1]) != root
    assert root_by_inclusion(leaf_hash(data[at]), at, size, [*path, root]) is None


@given(first=sizes, more=st.integers(0, 40), later=st.integers(0, 10))
def test_consistency_proofs(first: int, more: int, later: int) -> None:
    second = first + more
    data = data_of(second + later)
    tree, blocks = tree_of(data)
    loose = needed(tree, blocks, first) | needed(tree, blocks, second)
    path = tree.consistency_path(first, second, loose)
    old, new = naive.mth(data[:first]), naive.mth(data[:second])
    assert path == naive.proof(first, data[:second])
    assert is_consistent(first, second, old, new, path)
    rewritten = naive.mth([b"other", *data[1:second]])
    if more:
        assert not is_consistent(first, second, old, rewritten, path)
        honest_for_rewritten = naive.proof(first, [b"other", *data[1:second]])
        assert not is_consistent(first, second, old, rewritten, honest_for_rewritten)
    if path:
        assert not is_consistent(first, second, old, new, path[:-1])
        assert not is_consistent(first, second, old, new, [*path, old])
    assert tree.consistency_path(0, second, loose) == []
    assert is_consistent(0, second, naive.mth([]), new, [])
    assert not is_consistent(second + 1, second, old, new, path)
