"""Methods × ids of whom a memory belongs to × values that are no id: each is refused, and none means everybody."""

from __future__ import annotations

import asyncio
import inspect
from pathlib import Path
from typing import Any

import pytest

from commonplace import Memory, RemoteMemory, SyncMemory, SyncRemoteMemory
from commonplace.interface import MemoryInterface
from commonplace.interface.base import FLAGS
from commonplace.wire.errors import ValidationError

NOWHERE = "http://127.0.0.1:9"  # where nobody listens: what is refused is not sent
NO_IDS: tuple[Any, ...] = (False, True, 0, 5, ["alice"], ("alice",), {"$exists": True}, {}, b"alice")
METHODS = {
    name: inspect.signature(method).parameters
    for name, method in inspect.getmembers(MemoryInterface, inspect.isfunction)
    if not name.startswith("_")
}
TABLE = [
    (name, field)
    for name, parameters in METHODS.items()
    for field in ("agent_id", "user_id", "session_id")
    if field in parameters
]


def needed(name: str) -> dict[str, Any]:
    """Something for each parameter that a method cannot do without."""
    return {each.name: "tea" for each in list(METHODS[name].values())[1:] if each.default is each.empty}


def test_the_table_has_every_operation() -> None:
    assert {name for name, field in TABLE if field == "user_id"} == {
        "remember", "recall", "forget", "preview_forget", "would_forget", "list", "session",
    }  # fmt: skip
    assert {name for name, field in TABLE if field == "agent_id"} >= {"get", "update", "merge", "undo", "audit"}


@pytest.mark.parametrize(("name", "field"), TABLE)
def test_an_id_that_is_no_text_is_refused(name: str, field: str, tmp_path: Path) -> None:
    with SyncMemory(data=tmp_path / "data", embedder="none") as here, SyncRemoteMemory(NOWHERE) as there:
        for memory in (here, there):
            for value in NO_IDS:
                with pytest.raises(ValidationError, match=f"{field} must be text, not ") as refused:
                    getattr(memory, name)(**{**needed(name), field: value})
                assert refused.value.details["field"] == field
    assert not (tmp_path / "data").exists()  # what is wrong opens no store


@pytest.mark.parametrize(("name", "field"), TABLE)
def test_an_empty_id_is_refused(name: str, field: str, tmp_path: Path) -> None:
    with SyncMemory(data=tmp_path / "data", embedder="none") as here, SyncRemoteMemory(NOWHERE) as there:
        for memory in (here, there):
            with pytest.raises(ValidationError, match=f"{field} must not be empty; leave it out") as refused:
                getattr(memory, name)(**{**needed(name), field: ""})
            assert refused.value.details["field"] == field
    assert not (tmp_path / "data").exists()


def test_in_a_batch_it_is_refused_in_its_place(tmp_path: Path) -> None:
    with SyncMemory("assistant", data=tmp_path, embedder="none") as memory:
        items = [{"content": "tea", field: value} for field in ("user_id", "agent_id") for value in NO_IDS[:-1]]
        *refused, _kept = memory.remember_batch([*items, {"content": "tea", "user_id": None, "agent_id": None}])
        assert {type(each) for each in refused} == {ValidationError}
        assert [each["content"] for each in memory.list()["memories"]] == ["tea"]


def test_a_batch_for_a_server_says_it_as_it_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server refuses the one item: left out, False would be nobody."""
    sent: list[Any] = []

    async def send(self: RemoteMemory, requests: list[Any]) -> list[Any]:
        sent.extend(requests)
        return []

    monkeypatch.setattr(RemoteMemory, "_remember_batch", send)
    memory = RemoteMemory(NOWHERE, agent_id="assistant")
    asyncio.run(memory.remember_batch([{"content": "tea", "user_id": False, "approval_required": False}]))
    assert sent == [{"agent_id": "assistant", "type": "semantic", "content": "tea", "user_id": False}]


@pytest.mark.parametrize("value", NO_IDS)
def test_nobodys_memory_is_opened(value: Any, tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="agent must be text"):
        Memory(value, data=tmp_path)
    with pytest.raises(ValidationError, match="agent_id must be text, not "):
        RemoteMemory(NOWHERE, agent_id=value)


def test_false_means_absence_of_flags_only(tmp_path: Path) -> None:
    every = [parameter for parameters in METHODS.values() for parameter in parameters.values()]
    flags = {each.name for each in every if each.annotation == "bool" and each.default is False}
    assert flags == FLAGS
    with SyncMemory("assistant", data=tmp_path, embedder="none") as memory:
        kept = memory.remember("Alice drinks tea", approval_required=False)
        for name in METHODS["list"].keys() - {"self", "agent_id", "user_id"}:
            wrong: dict[str, Any] = {name: False}
            with pytest.raises(ValidationError, match=f"{name} cannot be False"):
                memory.list(**wrong)
        assert [hit.id for hit in memory.recall("tea", include_shared=False, explain=False)] == [kept.id]
