"""What is written through any protocol is found through every other, its fields intact; one set of rules holds on all.

Writers are in protocol_writers.py and readers in protocol_readers.py; how much each protocol can carry is read from
docs/protocols.md.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import quote

import pytest
from mcp_process import McpProcess, run_mcp
from protocol_caller import Caller, Document, StoredMemory, mint, saying
from protocol_readers import READERS, SHOW_ARCHIVED, amiss, asked, openwop_list
from protocol_writers import REMOVERS, WRITERS, attestation, complete, memorywire
from server_process import ServerProcess, run_server, token
from store_kinds import STORE

from commonplace.config import load as configure
from commonplace.dialects.mrp import Mrp
from commonplace.engine.engine import Engine
from commonplace.engine_factory import open_engine
from commonplace.remote import RemoteMemory
from commonplace.sdk import SyncMemory
from commonplace.serve.app import application
from commonplace.serve.server import address, listen, server_context
from commonplace.testing.subject import FakeClock
from commonplace.wire.errors import Fault
from commonplace.wire.models import dump
from commonplace.wire.record import Principal
from commonplace.wire.times import iso

KEEPER = Principal("keeper")
thorough = pytest.mark.slow  # each is quick, all of them together are not
OVER_HTTP = {name: reader for name, reader in READERS.items() if "stdio" not in name and "companion" not in name}
STAGING = [name for name, (_, can) in WRITERS.items() if can]
#: Who the audit names: the token's holder, or the user of the machine.
PRINCIPALS = {"MRP kept": "keeper", **{name: "local" for name in (*WRITERS, *REMOVERS) if "stdio" in name}}


@dataclass
class Deployment:
    """A server, a session on stdio with its companion server, and an asking agent, all on one data directory."""

    server: ServerProcess
    stdio: McpProcess
    companion: ServerProcess
    asking: SyncMemory
    tokens: dict[str, str]

    def at(self, agent: str = "", who: str = "owner") -> Caller:
        """A caller, with an agent that nobody has used yet unless one is named."""
        return Caller(
            self.server, self.tokens[who], agent or f"pier-{mint()[:8]}", self.stdio, self.companion, self.keep
        )  # fmt: skip

    def keep(self, agent: str, attestation: Document) -> Document:
        mrp = Mrp(self.asking.engine(), KEEPER)  # type: ignore[attr-defined]
        try:
            return self.asking.run(mrp.keep(attestation, from_agent="Babel", agent=agent))
        except Fault as fault:
            return {"code": fault.code}


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    data = tmp_path_factory.mktemp("deployment")
    made = {
        "owner": token(data, "--role", "admin", "--name", "owner"),
        "elsewhere": token(data, "--role", "reviewer", "--agents", "elsewhere", "--name", "elsewhere"),
        "stranger": token(data, "--role", "admin", "--tenant", "globex", "--name", "stranger"),
    }
    with (
        run_server(data, COMMONPLACE_MRP_REQUESTS_PER_MINUTE="1000000") as server,
        run_mcp(data, "--tools", "all", "--http", "127.0.0.1:0") as stdio,
        SyncMemory(data=data, embedder="hashing", principal=KEEPER) as asking,
    ):
        stdio.greet()
        yield Deployment(server, stdio, _companion(stdio, data), asking, made)


def _companion(stdio: McpProcess, data: Path) -> ServerProcess:
    """The HTTP server of a session on stdio says on stderr where it is."""
    assert stdio.process.stderr is not None
    for line in stdio.process.stderr:
        if found := re.search(rb"http://127\.0\.0\.1:\d+", line):
            return ServerProcess(None, found[0].decode(), data, [], [])  # type: ignore[arg-type]
    raise AssertionError("the companion server did not start")


def write(at: Caller, writer: str, **changes: Any) -> StoredMemory:
    more = {name: changes.pop(name) for name in ("approval_required",) if name in changes}
    said = saying(mint()[:8], at.now(), **changes)
    return WRITERS[writer][0](at, said, **more)


def written(at: Caller, writer: str, **changes: Any) -> StoredMemory:
    return complete(at, write(at, writer, **changes))


def found_by(at: Caller, kept: StoredMemory, readers: Any = READERS) -> set[str]:
    return {name for name, (_, reader, _) in readers.items() if reader(at, kept) is not None}


def wrong_with(at: Caller, kept: StoredMemory, readers: Any = READERS) -> dict[str, list[str]]:
    """Reader by reader: that it does not find the memory, or what it shows otherwise than it was said."""
    wrong = {}
    for name, (_, reader, _) in readers.items():
        seen = reader(at, kept)
        if problems := ["not found"] if seen is None else amiss(name, kept, seen):
            wrong[name] = problems
    return wrong


# found, with every field


@pytest.mark.parametrize("writer", WRITERS)
def test_found_through_every_protocol_with_its_fields(deployment: Deployment, writer: str) -> None:
    at = deployment.at()
    assert wrong_with(at, written(at, writer)) == {}


@thorough
@pytest.mark.parametrize("writer", WRITERS)
def test_found_by_project_tag_and_room(deployment: Deployment, writer: str) -> None:
    at = deployment.at()
    kept = written(at, writer)
    other = written(at, "memorywire", tags=["else"], project="else", room="Testing")
    tag, project, room = kept.said.get("tags", [None])[0], kept.said.get("project"), kept.said.get("room", "General")
    drawers = at.tool("/mcp/trusty", "memory_list", {"palace": at.agent, "room": room})["drawers"]
    assert [drawer["drawer_id"] for drawer in drawers] == [kept.id]

    def ids(path: str, name: str, key: str = "id") -> set[str]:
        return {each[key][-36:] for each in at.call("GET", path).json[name]}

    if tag is not None:
        assert ids(f"/v0/memories?agent_id={at.agent}&tag={tag}", "memories") == {kept.id}
        assert ids(f"/openwop/memory?memoryRef={at.agent}&tag={tag}", "entries") == {kept.id}
        records = at.call("GET", f"/amp/records?agent={at.agent}&tags={tag}").json["records"]
        assert [record["id"] for record in records] == [kept.said["amp_id"]]
        drawers = at.tool("/mcp/trusty", "memory_list", {"palace": at.agent, "tag": tag})["drawers"]
        assert [drawer["drawer_id"] for drawer in drawers] == [kept.id]
        assert asked(at, kept, structured={"keywords": [tag]})
        assert asked(at, kept, structured={"domain": tag})
        assert not asked(at, other, structured={"domain": tag})
    if project is not None:
        ref = at.call("POST", "/openwop/refs", {"agent": at.agent, "namespace": project}).json["memoryRef"]
        assert ids(f"/openwop/memory?memoryRef={ref}", "entries") == {kept.id}
        records = at.call("GET", f"/amp/records?agent={at.agent}&project={project}").json["records"]
        assert [record["id"] for record in records] == [kept.said["amp_id"]]
        assert asked(at, kept, structured={"domain": project})
        assert not asked(at, other, structured={"domain": project})
        recall = {"agent_id": at.agent, "query": "ferry", "filter": {"project": project}, "min_score": 0}
        assert [hit["id"] for hit in at.call("POST", "/v0/recall", recall).json["results"]] == [kept.id]


def test_amps_shared_space_is_the_agent_shared_everywhere(deployment: Deployment) -> None:
    at = deployment.at("shared")
    record = {"type": "note", "content": f"The ferry {mint()[:8]} is everybody's"}
    shown = at.call("POST", "/amp/store", {"record": record}).json["id"]
    said = {"content": record["content"], "type": "semantic", "kind": "note", "amp_id": shown}
    assert wrong_with(at, complete(at, StoredMemory(shown[-36:], said))) == {}


# changed


@thorough
@pytest.mark.parametrize("writer", WRITERS)
def test_changed_through_memorywire_it_is_changed_everywhere(deployment: Deployment, writer: str) -> None:
    at = deployment.at()
    kept = written(at, writer)
    new = {"content": f"The ferry {mint()[:8]} leaves at eight", "confidence": 0.5, "tags": ["moved"],
           "expires_at": at.now() + 5_000_000}  # fmt: skip
    assert at.call("PATCH", f"/v0/memories/{kept.id}", {"agent_id": at.agent, **new}).status == 200
    kept.said |= new | (_ours_now(kept) if writer == "MRP kept" else {})
    assert wrong_with(at, complete(at, kept)) == {}


def _ours_now(kept: StoredMemory) -> Document:
    """What MRP says of a received attestation once it says something else: it is ours, and it came from someone."""
    return {"attested_at": iso(kept.said["created_at"]), "attested_source": "received"}


@thorough
@pytest.mark.parametrize("writer", WRITERS)
def test_metadata_sent_back_as_it_was_read_changes_nothing(deployment: Deployment, writer: str) -> None:
    at = deployment.at()
    kept = written(at, writer)
    path = f"/amp/records/{quote(kept.said['amp_id'], safe='')}"
    before = at.call("GET", path).json["record"]
    metadata = at.call("GET", f"/v0/memories/{kept.id}?agent_id={at.agent}").json["metadata"]
    change = {"agent_id": at.agent, "metadata": metadata}
    assert at.call("PATCH", f"/v0/memories/{kept.id}", change).json["metadata"] == metadata
    assert wrong_with(at, kept) == {}
    after = at.call("GET", path).json["record"]
    assert after == {**before, "updated_at": after["updated_at"]}


def test_how_long_something_received_is_kept_changes_nothing_its_author_signed(deployment: Deployment) -> None:
    at = deployment.at()
    kept = written(at, "MRP kept")
    change = {"agent_id": at.agent, "expires_at": at.now() + 5_000_000, "tags": ["kept longer"]}
    assert at.call("PATCH", f"/v0/memories/{kept.id}", change).status == 200
    by_mrp = {name: reader for name, reader in READERS.items() if reader[0] == "MRP"}
    assert wrong_with(at, kept, by_mrp) == {}
    kept.said |= {name: change[name] for name in ("expires_at", "tags")}
    others = {name: reader for name, reader in READERS.items() if name not in by_mrp}
    assert wrong_with(at, complete(at, kept), others) == {}


@thorough
@pytest.mark.parametrize("writer", WRITERS)
def test_stored_again_through_amp_as_it_was_read_nothing_is_lost(deployment: Deployment, writer: str) -> None:
    at = deployment.at()
    kept = written(at, writer)
    path = f"/amp/records/{quote(kept.said['amp_id'], safe='')}"
    record = at.call("GET", path).json["record"]
    record["content"] = kept.said["content"] = f"The ferry {mint()[:8]} leaves at eight"
    again = at.call("POST", "/amp/store", {"record": record}).json
    assert (again["id"], again["created"]) == (kept.said["amp_id"], False)
    if writer == "MRP kept":
        kept.said |= _ours_now(kept) | {"type": "semantic"}  # as AMP has it of every type it does not know
    assert wrong_with(at, kept) == {}
    now = at.call("GET", path).json["record"]
    assert now == {**record, "updated_at": now["updated_at"]}


def test_an_id_that_amp_shows_is_never_that_of_another_memory(deployment: Deployment) -> None:
    """What one agent here attests another may keep: it is received under the id of the first one's memory."""
    one, other = deployment.at(), deployment.at()
    original = written(one, "memorywire")
    made = {**attestation(original.said), "id": original.id, "agent": one.agent}
    copy = StoredMemory(deployment.keep(other.agent, made)["memory_id"], {"content": original.content})
    (record,) = other.call("GET", f"/amp/records?agent={other.agent}").json["records"]
    path = f"/amp/records/{record['id']}"
    assert other.call("GET", path).json["record"] == record
    assert other.call("DELETE", path).json["deleted"] is True
    assert found_by(other, copy) == set()
    assert wrong_with(one, original) == {}


# taken away


def writers_with(remover: str) -> list[str]:
    """All of them; on a database, which takes twice as long, every third: each of them with a third of the removers."""
    names = list(WRITERS)
    return names[list(REMOVERS).index(remover) % 3 :: 3] if STORE else names


#: Asked for what was merged, these show what it became part of.
BY_ID = {"memorywire get", "MCP get", "MCP get on stdio", "MCP resource", "AMP get", "AMP get by our id"}


@thorough
@pytest.mark.parametrize("remover", REMOVERS)
def test_taken_away_it_is_gone_everywhere_at_once(deployment: Deployment, remover: str) -> None:
    for writer in writers_with(remover):
        at = deployment.at()
        kept = written(at, writer)
        run = at.call("POST", "/openwop/runs", {"memoryRef": at.agent}).json["runId"]
        REMOVERS[remover](at, kept)
        at.transcript.clear()
        shown = found_by(at, kept)
        assert shown <= (BY_ID if remover == "memorywire merge" else set()), writer
        assert not [said for said in at.transcript if kept.content in _answered(said)], writer
        in_run = openwop_list(at, kept, runId=run)
        erased = remover == "memorywire hard delete"
        assert (in_run is None) if erased else (in_run and in_run["content"] == kept.content), writer


def _answered(said: str) -> str:
    """An answer without the question that some protocols repeat."""
    return re.sub(r'\\?"query\\?":\s?\\?"[^"]*"', "", said)


@thorough
@pytest.mark.parametrize("writer", WRITERS)
def test_archived_it_is_looked_up_and_not_recalled(deployment: Deployment, writer: str) -> None:
    at = deployment.at()
    kept = written(at, writer)
    policy = {"type": kept.said["type"]}
    archived = at.call("POST", "/v0/expire", {"agent_id": at.agent, "policy": policy, "action": "archive"})
    assert archived.json["matched_count"] == 1
    assert found_by(at, kept) == SHOW_ARCHIVED


# time to live: in this process, where time passes when it is told to


@contextmanager
def held(data: Path, clock: FakeClock) -> Iterator[Caller]:
    """The server's own application on a socket of its own, over an engine with that clock."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def run(work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, loop).result()

    async def start() -> tuple[Engine, str, Any, Any, ServerProcess]:
        import uvicorn

        config = configure(data=data, embedder="hashing")
        engine = await open_engine(config, clock=clock)
        _, secret = await engine.tokens.create(Principal(), role="admin", name="owner")
        sock = listen("127.0.0.1", 0)
        app = application(await server_context(config, engine))
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off", ws="none"))
        serving = asyncio.create_task(server.serve(sockets=[sock]))
        return engine, secret, server, serving, ServerProcess(None, address(sock), data, [], [])  # type: ignore[arg-type]

    engine, secret, server, serving, place = run(start())

    def keep(agent: str, attestation: Document) -> Document:
        kept: Document = run(Mrp(engine, KEEPER).keep(attestation, from_agent="Babel", agent=agent))
        return kept

    async def stop() -> None:
        server.should_exit = True
        await serving
        await engine.close()

    try:
        yield Caller(place, secret, "pier", keep=keep, now=clock)
    finally:
        run(stop())
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@thorough
def test_when_its_time_is_over_it_is_gone_everywhere_and_in_every_run(tmp_path: Path) -> None:
    clock = FakeClock()
    with held(tmp_path, clock) as here:
        kept: dict[str, tuple[Caller, StoredMemory, str]] = {}
        ends = clock() + 60_000
        for writer in WRITERS:
            if "stdio" in writer or "companion" in writer:
                continue
            at = replace(here, agent=f"pier-{mint()[:8]}", transcript=[])
            memory = written(at, writer, expires_at=ends)
            if "expires_at" not in memory.said:  # what a protocol cannot say is said of its memories by another
                change = {"agent_id": at.agent, "expires_at": ends}
                assert at.call("PATCH", f"/v0/memories/{memory.id}", change).status == 200
                memory.said["expires_at"] = ends
            run = at.call("POST", "/openwop/runs", {"memoryRef": at.agent}).json["runId"]
            kept[writer] = at, memory, run
        clock.advance(59_999)
        for writer, (at, memory, run) in kept.items():
            assert wrong_with(at, memory, OVER_HTTP) == {}, writer
            assert openwop_list(at, memory, runId=run), writer
        clock.advance(1)
        for writer, (at, memory, run) in kept.items():
            at.transcript.clear()
            assert found_by(at, memory, OVER_HTTP) == set(), writer
            assert openwop_list(at, memory, runId=run) is None, writer
            assert not [said for said in at.transcript if memory.content in _answered(said)], writer


# approval


@thorough
@pytest.mark.parametrize("writer", STAGING)
def test_until_it_is_approved_nobody_finds_it(deployment: Deployment, writer: str) -> None:
    at = deployment.at()
    kept = write(at, writer, approval_required=True)
    reviews = at.call("GET", "/v0/reviews?status=pending").json["reviews"]
    (review,) = [each for each in reviews if each["agent_id"] == at.agent]
    kept.id = review["memory_id"]
    run = at.call("POST", "/openwop/runs", {"memoryRef": at.agent}).json["runId"]
    at.transcript.clear()
    assert found_by(at, kept) == set()
    assert not [said for said in at.transcript if kept.content in _answered(said)]
    for hard in (False, True):
        request = {"agent_id": at.agent, "ids": [kept.id], "hard_delete": hard}
        assert at.call("POST", "/v0/forget", request).json["forgotten_ids"] == []
        assert at.tool("/mcp/full", "forget", request)["forgotten_ids"] == []
    at.tool("/mcp/trusty", "memory_forget", {"palace": at.agent, "drawer_id": kept.id})  # which tells nobody
    assert at.call("DELETE", f"/amp/records/{kept.id}").json["deleted"] is False
    assert at.call("DELETE", f"/openwop/memory/{kept.id}?memoryRef={at.agent}").json["removed"] is False
    other = memorywire(at, {"type": "semantic", "content": "another timetable"})
    for canonical, duplicate in ((other.id, kept.id), (kept.id, other.id)):
        merge = {"agent_id": at.agent, "canonical": canonical, "duplicates": [duplicate]}
        assert at.call("POST", "/v0/merge", merge).status == 404
    assert at.call("POST", "/v0/forget", {"agent_id": at.agent, "ids": [other.id]}).json["forgotten_ids"] == [other.id]
    assert at.call("POST", f"/v0/reviews/{review['id']}", {"approved": True}).status == 200
    assert wrong_with(at, complete(at, kept)) == {}
    assert openwop_list(at, kept, runId=run) is None, "the run began before it was a memory"


@thorough
@pytest.mark.parametrize("writer", STAGING)
def test_edited_by_a_reviewer_it_keeps_all_else(deployment: Deployment, writer: str) -> None:
    at = deployment.at()
    kept = write(at, writer, approval_required=True)
    reviews = at.call("GET", "/v0/reviews?status=pending").json["reviews"]
    (review,) = [each for each in reviews if each["agent_id"] == at.agent]
    edited = {**review["request"], "content": f"The ferry {mint()[:8]} leaves at eight"}
    decided = at.call("POST", f"/v0/reviews/{review['id']}", {"approved": True, "request": edited})
    assert decided.status == 200, decided.body
    kept.id, kept.said["content"] = review["memory_id"], edited["content"]
    assert wrong_with(at, complete(at, kept)) == {}


@thorough
@pytest.mark.parametrize("writer", STAGING)
def test_what_is_turned_down_is_never_found(deployment: Deployment, writer: str) -> None:
    at = deployment.at()
    kept = write(at, writer, approval_required=True)
    reviews = at.call("GET", "/v0/reviews?status=pending").json["reviews"]
    (review,) = [each for each in reviews if each["agent_id"] == at.agent]
    kept.id = review["memory_id"]
    assert at.call("POST", f"/v0/reviews/{review['id']}", {"approved": False}).status == 200
    assert found_by(at, kept) == set()


# redaction


def secret(seed: str) -> str:
    """A token that is put together here, so that none is in this file."""
    return "gh" + "p_" + "".join(Random(seed).choices("0123456789abcdef", k=36))


@pytest.mark.parametrize("writer", WRITERS)
def test_a_secret_is_taken_out_before_anyone_can_read_it(deployment: Deployment, writer: str) -> None:
    at = deployment.at()
    hidden = secret(writer)
    told = {"content": f"The ferry's key is {hidden}", "tags": [hidden], "title": hidden, "metadata": hidden,
            "source": f"log/{hidden}", "speaker": hidden}  # fmt: skip
    kept = write(at, writer, **told)
    if kept.refused:
        assert kept.refused == "secret_leakage", "what was signed cannot be changed, so it is refused"
        assert at.call("GET", f"/v0/memories?agent_id={at.agent}").json["memories"] == []
        return
    clean = {name: _clean(value, hidden) for name, value in kept.said.items()}
    kept = complete(at, StoredMemory(kept.id, clean))
    at.transcript.clear()
    assert wrong_with(at, kept) == {}
    _look_around(at, kept)
    assert not [said for said in at.transcript if hidden in said]


@pytest.mark.parametrize("writer", STAGING)
def test_a_secret_is_taken_out_before_a_reviewer_can_read_it(deployment: Deployment, writer: str) -> None:
    at = deployment.at()
    hidden = secret(f"staged {writer}")
    write(at, writer, content=f"The ferry's key is {hidden}", tags=[hidden], approval_required=True)
    _look_around(at)
    assert "REDACTED" in at.transcript[-2], "the reviews"
    assert not [said for said in at.transcript if hidden in said]


def _look_around(at: Caller, kept: StoredMemory | None = None) -> None:
    """Wherever else a memory leaves words."""
    if kept is not None:
        at.call("GET", f"/v0/memories/{kept.id}/history?agent_id={at.agent}")
    at.call("GET", "/v0/reviews?status=all")
    at.call("GET", f"/v0/audit?agent_id={at.agent}")


def _clean(value: Any, hidden: str) -> Any:
    if isinstance(value, list):
        return [_clean(each, hidden) for each in value]
    return value.replace(hidden, "<REDACTED:github_token>") if isinstance(value, str) else value


# the wall


@thorough
@pytest.mark.parametrize("who", ["stranger", "elsewhere"])
@pytest.mark.parametrize("writer", WRITERS)
def test_who_may_not_read_it_learns_nothing(deployment: Deployment, writer: str, who: str) -> None:
    at = deployment.at()
    kept = written(at, writer)
    outside = replace(deployment.at(at.agent, who), stdio=None)
    readers = {name: reader for name, reader in READERS.items() if "stdio" not in name}
    assert found_by(outside, kept, readers) == set()
    assert not [said for said in outside.transcript if kept.content in _answered(said)]
    # The same questions about a memory and an agent that never were.
    never = replace(outside, agent=f"pier-{mint()[:8]}", transcript=[])
    absent = StoredMemory(mint(), {**kept.said, "amp_id": f"{kept.said['kind']}_{mint()}"})
    assert found_by(never, absent, readers) == set()
    assert [_normal(said, at.agent, kept) for said in outside.transcript] == [
        _normal(said, never.agent, absent) for said in never.transcript
    ]


def _normal(said: str, agent: str, kept: StoredMemory) -> str:
    """An answer without what the caller put into it, and without times and durations."""
    for mark in (kept.said["amp_id"], kept.id, agent):
        said = said.replace(mark, "…")
    said = re.sub(r'\\?"(latency_ms|processing_time_ms)\\?":[\d.]+', "", said)
    return re.sub(r'"(request_id|response_id|timestamp|request)":"[^"]*"', "", said)


@thorough
@pytest.mark.parametrize("who", ["stranger", "elsewhere"])
@pytest.mark.parametrize("remover", REMOVERS)
def test_who_may_not_read_it_cannot_take_it_away(deployment: Deployment, remover: str, who: str) -> None:
    if "stdio" in remover:
        return  # whoever may start a process on the data directory owns it
    at = deployment.at()
    kept = written(at, "AMP, id chosen")
    with suppress(AssertionError, KeyError, TypeError):  # refused; trusty says of what is not there that it is gone
        REMOVERS[remover](deployment.at(at.agent, who), kept)
    assert wrong_with(at, kept) == {}


ERASING_A_PERSON = {
    "HTTP": lambda at, request: at.call("POST", "/v0/forget", request).json,
    "JSON-RPC": lambda at, request: at.rpc("forget", request),
    "MCP": lambda at, request: at.tool("/mcp/full", "forget", request),
    "MCP on stdio": lambda at, request: at.tool("stdio", "forget", request),
    "SDK": lambda at, request: _erase_by_sdk(at, **request),
}


def _erase_by_sdk(at: Caller, agent_id: str, **request: Any) -> Document:
    async def erase() -> Document:
        async with RemoteMemory(at.server.url, at.token, agent_id) as memory:
            preview = await memory.preview_forget(**request)
            gone = dump(await memory.forget(**request))
            assert {memory["id"] for memory in preview} == set(gone["forgotten_ids"])
            return gone

    return asyncio.run(erase())


@pytest.mark.parametrize("way", ERASING_A_PERSON)
def test_a_person_is_erased_from_every_agent_through_every_way(deployment: Deployment, way: str) -> None:
    one, two, person = deployment.at(), deployment.at(), f"alice-{mint()[:8]}"
    kept = {at.agent: memorywire(at, {"type": "semantic", "content": "tea", "user_id": person}).id for at in (one, two)}
    bob = memorywire(two, {"type": "semantic", "content": "tea", "user_id": "bob"}).id
    request = {"filter": {"user_id": person}, "hard_delete": True, "all_agents": True, "reason": f"{person} asked"}
    gone = ERASING_A_PERSON[way](one, {"agent_id": one.agent, **request})
    assert set(gone["forgotten_ids"]) == set(kept.values())
    assert {each["agent_id"]: each["count"] for each in gone["agents"] if each["count"]} == dict.fromkeys(kept, 1)
    for agent, id in kept.items():
        assert one.call("GET", f"/v0/memories/{id}/history?agent_id={agent}").status == 404
        entries = one.call("GET", f"/v0/audit?agent_id={agent}&operation=forget").json["entries"]
        assert {"reason": f"{person} asked"} in entries[-1]["payload"]
    assert two.call("GET", f"/v0/memories/{bob}?agent_id={two.agent}").status == 200


# the audit


@pytest.mark.parametrize("writer", WRITERS)
def test_every_write_is_in_the_audit_under_its_authors_name(deployment: Deployment, writer: str) -> None:
    at = deployment.at()
    kept = written(at, writer)
    assert _entries(at, "remember", kept) == [PRINCIPALS.get(writer, "owner")]


@pytest.mark.parametrize("remover", REMOVERS)
def test_every_removal_is_in_the_audit_under_its_authors_name(deployment: Deployment, remover: str) -> None:
    at = deployment.at()
    kept = written(at, "OpenWOP")
    REMOVERS[remover](at, kept)
    operation = "merge" if "merge" in remover else "forget"
    assert _entries(at, operation, kept) == [PRINCIPALS.get(remover, "owner")]


def _entries(at: Caller, operation: str, kept: StoredMemory) -> list[str]:
    """Who did it to this memory, by the audit."""
    entries = at.call("GET", f"/v0/audit?agent_id={at.agent}&operation={operation}").json["entries"]
    about = [e for e in entries if any(kept.id in (p.get("memory_id"), p.get("id")) for p in e["payload"])]
    return [entry["principal"] for entry in about]


def test_the_audit_chain_is_whole_after_all_of_it(deployment: Deployment) -> None:
    at = deployment.at()
    for writer in WRITERS:
        write(at, writer)
    verdict = at.call("GET", "/v0/audit/verify").json
    assert verdict["ok"] is True
    assert verdict["entries"] >= len(WRITERS)
