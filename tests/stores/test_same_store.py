from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from commonplace.config import load
from commonplace.sdk import Memory
from commonplace.serve.shared_embedder import open_session_engine
from commonplace.stores.same_store import require_different
from commonplace.wire.errors import ValidationError

HOST = "postgresql://alice:geheim@db.example"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that commands are run in, with a store, a link to it and a second name of its file."""
    monkeypatch.chdir(tmp_path)
    for name in ("PGHOST", "PGPORT"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "a.db").touch()
    (tmp_path / "link.db").symlink_to(tmp_path / "a.db")
    (tmp_path / "there").symlink_to(tmp_path)
    os.link(tmp_path / "a.db", tmp_path / "hard.db")
    return tmp_path


SAME = [
    ("sqlite://a.db", "sqlite://a.db"),
    ("sqlite://a.db", "sqlite://./sub/../a.db"),
    ("sqlite://a.db", "sqlite://{}/a.db"),
    ("sqlite://a.db", "sqlite://{}/a.db?name=spare&types=semantic"),
    ("sqlite://a.db", "sqlite-vec://a.db"),
    ("sqlite://a.db", "sqlite://link.db"),
    ("sqlite://a.db", "sqlite://there/a.db"),
    ("sqlite://a.db", "sqlite://hard.db"),
    ("sqlite://new.db", "sqlite-vec://there/new.db"),
    ("mem0://notes", "mem0:///{}/data/mem0/notes?timeout=5"),
    ("cognee://notes?embeddings=http://one.example/v1", "cognee://notes?embeddings=http://two.example/v1"),
    ("letta://h:1/notes?token_env=ONE", "letta+https://H:1/notes/?token_env=TWO"),
    ("letta://h:1", "letta://h:1/commonplace"),
    ("letta://h", "letta://h:80"),
    ("memorywire+http://h:1", "memorywire+http://H:1/?name=other"),
    ("memorywire+https://h", "memorywire+https://h:443"),
    (f"{HOST}/memories", "postgres://bob:secret@DB.example:5432/memories?pool=2&sslmode=require&name=spare"),
    (f"{HOST}/memories", "pgvector:///memories?host=db.example&schema=commonplace"),
    (f"{HOST},two/memories", "postgresql://two:5432,three/memories"),
    ("postgresql:///memories", "postgresql:///memories?user=alice"),
    ("postgresql:///memories?host=one,two&port=5433,5434", "postgresql://two:5434/memories"),
    ("postgresql:///memories?hostaddr=10.0.0.1", "postgresql://10.0.0.1/memories"),
    ("mem0+postgresql://alice:geheim@db.example/m", "mem0+postgresql://bob:secret@db.example:5432/m"),
    ("shelf://notes", "shelf://notes"),
]  # fmt: skip
DIFFERENT = [
    ("sqlite://a.db", "sqlite://b.db"),
    ("memory://", "memory://"),
    ("sqlite://:memory:", "sqlite://:memory:"),
    ("sqlite://a.db", "mem0:///{}/a.db"),
    ("mem0://notes", "mem0://others"),
    ("mem0://notes", "cognee://notes"),
    ("letta://h:1/notes", "letta://h:1/others"),
    ("memorywire+http://h:1?token_env=ONE", "memorywire+http://h:1?token_env=TWO"),
    ("memorywire+http://h:1", "memorywire+http://h:2"),
    (f"{HOST}/memories", f"{HOST}/others"),
    (f"{HOST}/memories", f"{HOST}/memories?schema=other"),
    (f"{HOST}/memories", f"{HOST}:5433/memories"),
    ("postgresql:///memories?host=one,two&port=5433,5434", "postgresql://two:5433/memories"),
    (f"{HOST}/memories", "mem0+postgresql://alice:geheim@db.example/memories"),
    ("shelf://", "shelf://"),
    ("shelf://notes", "shelf://others"),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), SAME)
def test_a_store_that_is_named_twice_is_refused_however_it_is_written(folder: Path, one: str, other: str) -> None:
    urls = [url.format(folder) for url in ("sqlite://first.db", one, other)]
    for given in (urls, [urls[2], urls[0], urls[1]], urls[1:]):
        with pytest.raises(ValidationError) as refused:
            require_different(given, folder / "data")
        said = refused.value.message
        assert "name the same store" in said
        assert "geheim" not in said
        assert "secret" not in said
        assert refused.value.details["field"] == "stores"
    assert one.partition("://")[0] in said
    assert other.partition("://")[0] in said


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_stores_that_differ_are_not_refused(folder: Path, one: str, other: str) -> None:
    require_different([one.format(folder), other.format(folder)], folder / "data")


def test_one_of_many_hosts_by_the_environment_is_the_same(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGHOST", "db.example")
    with pytest.raises(ValidationError, match="name the same store"):
        require_different([f"{HOST}/memories", "postgresql:///memories"], folder)


def test_a_program_is_refused_before_anything_is_written(folder: Path) -> None:
    async def opened() -> None:
        with pytest.raises(
            ValidationError, match=r"sqlite://new\.db and sqlite-vec://there/new\.db name the same store"
        ):
            await Memory(stores=["sqlite://new.db", "sqlite-vec://there/new.db"], data=folder / "data").status()
        async with Memory(stores=["sqlite://other.db"], data=folder / "data", embedder="none") as other:
            with pytest.raises(ValidationError, match="is among the stores twice"):
                await Memory(stores=["sqlite://new.db", other, other], data=folder / "data", embedder="none").status()
        with pytest.raises(ValidationError, match="name the same store"):  # which `commonplace mcp` opens
            await open_session_engine(load(data=folder / "data", stores=("sqlite://new.db", "sqlite://./new.db")))

    asyncio.run(opened())
    assert not (folder / "new.db").exists()
