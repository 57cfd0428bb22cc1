"""What the paper's Table 2 says of each adapter: the scheme of its URLs, and what it can do."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from products import cognee_url, database_url, needs

from commonplace import plugins
from commonplace.embedders.hashing import HashingEmbedder
from commonplace.stores.base import Store, StoreSettings
from commonplace.stores.cognee import CogneeStore
from commonplace.stores.letta import LettaStore
from commonplace.stores.mem0 import Mem0Store
from commonplace.stores.postgres.store import PostgresStore
from commonplace.stores.sqlite_vec import SqliteVecStore
from commonplace.testing import FakeClock
from commonplace.wire.errors import OperatorActionRequired

pytestmark = [pytest.mark.slow, pytest.mark.process, pytest.mark.filterwarnings("ignore")]

#: By scheme. Cognee makes its graph of entities with an LLM, and none is asked here: that one it does not declare.
TABLE_2: dict[str, tuple[type, str]] = {
    "sqlite-vec": (SqliteVecStore, "semantic episodic procedural emotional vector fts recall_tracking"),
    "pgvector": (PostgresStore, "semantic episodic procedural emotional vector recall_tracking governance"),
    "mem0": (Mem0Store, "semantic episodic vector"),
    "letta": (LettaStore, "semantic episodic vector"),
    "cognee": (CogneeStore, "semantic episodic vector"),
}


def url_of(scheme: str, folder: Path) -> str:
    if scheme == "pgvector":
        return database_url("pgvector")
    if scheme == "letta":
        return "letta://127.0.0.1:9/notes"  # nobody is asked before there is something to keep
    return cognee_url() if scheme == "cognee" else f"{scheme}://{folder}/kept"


@pytest.mark.parametrize("scheme", TABLE_2)
def test_a_scheme_opens_a_store_that_declares_its_capabilities(scheme: str, tmp_path: Path) -> None:
    kind, capabilities = TABLE_2[scheme]
    assert set(capabilities.split()) <= kind.capabilities  # type: ignore[attr-defined]
    if scheme in ("mem0", "cognee") and needs(scheme, scheme)() is not None:
        with pytest.raises(OperatorActionRequired, match=rf"pip install 'commonplace-memory\[{scheme}\]'"):
            plugins.opener(f"{scheme}://default")
        pytest.skip(f"{scheme} is not installed: `make test-backends` installs it")
    opener = plugins.opener(url := url_of(scheme, tmp_path))
    store = opener(url, FakeClock(), StoreSettings(folder=tmp_path, embed=HashingEmbedder().embed))
    assert isinstance(store, kind)
    assert isinstance(store, Store)
    assert set(capabilities.split()) <= store.capabilities
    asyncio.run(store.close())
