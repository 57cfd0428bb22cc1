"""An imported version remembers when it was first written, and histories are compared by what they say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from commonplace.engine.transfer.originals import as_imported, as_original, same_words
from commonplace.wire.record import Memory

FIRST = Memory("1", "t", "agent", "semantic", "one", created_at=5, updated_at=7, version=1, provenance={"a": 1})
SECOND = replace(FIRST, content="two", version=2, updated_at=9)


def test_there_and_back() -> None:
    carried = replace(as_imported(FIRST, 1), updated_at=1000, seq=40, tenant="other")
    assert carried.provenance == {"a": 1, "original": {"version": 1, "updated_at": 7}}
    assert as_original(carried) == replace(FIRST, seq=40, tenant="other")


def test_what_was_never_imported_is_as_it_is() -> None:
    assert as_original(FIRST) is FIRST


def test_a_version_made_here_since_has_its_own_time() -> None:
    later = replace(as_imported(FIRST, 1), version=2, updated_at=2000, content="changed here")
    assert as_original(later).updated_at == 2000
    assert "original" not in as_original(later).provenance


@pytest.mark.parametrize("name", ["tenant", "seq", "version", "salt", "content_hash", "recalls", "demotion"])
def test_what_a_store_decides_is_no_difference(name: str) -> None:
    other = {"tenant": "x", "salt": b"x", "content_hash": "x"}.get(name, 17)
    assert same_words(FIRST, replace(FIRST, **{name: other}))


@pytest.mark.parametrize("name", ["content", "agent_id", "created_at", "updated_at", "status", "aliases", "metadata"])
def test_anything_else_is(name: str) -> None:
    assert not same_words(FIRST, replace(FIRST, **{name: "other"}))
