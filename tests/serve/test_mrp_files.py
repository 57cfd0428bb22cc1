"""MRP through a folder: answers appear whole, once, in order, and nothing in a file leads anywhere else."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from server_process import SECONDS, command, environment

from commonplace import Memory
from commonplace.dialects.mrp import Mrp
from commonplace.dialects.mrp.signatures import attestation_hash
from commonplace.serve.mrp_files import LOOKS, MAX_BYTES, AnswerSummary, RequestFolder, watch
from commonplace.wire.errors import RateLimited, Unavailable, ValidationError, internal_error
from commonplace.wire.record import Principal, system_clock
from commonplace.wire.times import iso
from commonplace.wire.validate import check

Document = dict[str, Any]


class LimitedPause:
    """Between two looks: whatever the test does; after so many, the end."""

    def __init__(self, most: int, between: Callable[[int], None] = lambda n: None) -> None:
        self.done = 0
        self._most = most
        self._between = between

    @property
    def stopped(self) -> bool:
        return self.done >= self._most

    async def wait(self) -> None:
        self.done += 1
        self._between(self.done)


@dataclass
class ExchangeFolder:
    """A data directory, an exchange folder, and what was said about it."""

    data: Path
    folder: Path
    said: list[str] = field(default_factory=list)

    def ask(self, text: str = "what about tea?", *, id: str | None = None, **more: Any) -> str:
        """Writes a request; its id."""
        document = request(text, id=id, **more)
        found: str = document["header"]["request_id"]
        self.path("request", found).write_text(json.dumps(document), "utf-8")
        return found

    def path(self, kind: str, id: str) -> Path:
        return self.folder / f"{kind}-{id}.json"

    def response(self, id: str, kind: str = "response") -> Document:
        found: Document = json.loads(self.path(kind, id).read_text("utf-8"))
        check("mrp/response" if found["type"] == "memory_response" else "mrp/verify-result", found)
        return found

    def watch(
        self, looks: int = 1, between: Callable[[int], None] = lambda n: None, *, trusted: bool = False, **more: Any
    ) -> list[AnswerSummary]:
        async def run() -> list[AnswerSummary]:
            answered: list[AnswerSummary] = []
            async with Memory(data=self.data, embedder="hashing") as memory:
                mrp = Mrp(await memory.engine(), Principal(), agent="keeper", authenticated=trusted)
                with RequestFolder(
                    self.folder, mrp.handle, responder="keeper", report=self.said.append, **more
                ) as folder:
                    await watch(folder, LimitedPause(looks, between), answered.append)
            return answered

        return asyncio.run(run())

    def names(self) -> set[str]:
        return {entry.name for entry in self.folder.iterdir()}

    def memories(self) -> int:
        async def run() -> int:
            async with Memory("keeper", data=self.data, embedder="hashing") as memory:
                return len((await memory.list())["memories"])

        return asyncio.run(run())


def request(text: str = "what about tea?", *, id: str | None = None, **more: Any) -> Document:
    header = {"request_id": id or str(uuid.uuid4()), "timestamp": iso(system_clock()), **more.pop("header", {})}
    return {
        "type": "memory_request", "version": "0.1", "header": header, "requester": {"agent_id": "bob"},
        "query": {"natural": text}, **more,
    }  # fmt: skip


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with something shared and something not."""
    data = tmp_path_factory.mktemp("data")

    async def fill() -> None:
        async with Memory("keeper", data=data, embedder="hashing") as memory:
            await memory.remember("Alice drinks green tea in the morning", privacy_intent={"share_with": ["*"]})
            await memory.remember("Alice hides the good tea behind the flour")

    asyncio.run(fill())
    return data


@pytest.fixture
def exchange(kept: Path, tmp_path: Path) -> ExchangeFolder:
    folder = tmp_path / "exchange"
    folder.mkdir()
    return ExchangeFolder(kept, folder)


def test_a_request_finds_its_response(exchange: ExchangeFolder) -> None:
    id = exchange.ask()
    before = exchange.path("request", id).read_bytes()
    (answered,) = exchange.watch()
    response = exchange.response(id)
    assert (answered.status, answered.results) == ("success", 1)
    assert (answered.request, answered.response) == (f"request-{id}.json", f"response-{id}.json")
    assert response["header"]["request_id"] == id
    assert response["responder"]["agent_id"] == "keeper"
    assert [r["attestation"]["claim"]["content"] for r in response["results"]] == [
        "Alice drinks green tea in the morning"
    ]
    assert exchange.path("request", id).read_bytes() == before
    assert exchange.names() == {answered.request, answered.response}
    assert exchange.said == []


def test_a_folder_proves_nobody_unless_it_is_trusted(exchange: ExchangeFolder) -> None:
    first = exchange.ask()
    assert [a.results for a in exchange.watch()] == [1]
    assert exchange.response(first)["meta"]["trust_level_used"] == 0
    second = exchange.ask()
    assert [a.results for a in exchange.watch(trusted=True)] == [2]
    assert exchange.response(second)["meta"]["trust_level_used"] == 3


def test_a_verification_finds_its_result(exchange: ExchangeFolder) -> None:
    id = exchange.ask()
    exchange.watch()
    (result,) = exchange.response(id)["results"]
    for kind, answer_kind in (("verify", "verify-result"), ("request", "response")):
        verify_id = str(uuid.uuid4())
        document = {
            "type": "memory_verify", "version": "0.1",
            "header": {"verify_id": verify_id, "timestamp": iso(system_clock())},
            "target": {"memory_id": result["memory_id"], "attestation_hash": attestation_hash(result["attestation"])},
            "checks": ["signature", "freshness"],
        }  # fmt: skip
        exchange.path(kind, verify_id).write_text(json.dumps(document), "utf-8")
        (answered,) = exchange.watch()
        found = exchange.response(verify_id, answer_kind)
        assert (found["type"], found["header"]["verify_id"]) == ("verify_result", verify_id)
        assert found["results"]["signature"]["status"] == "pass"
        assert answered.status == found["aggregate"]["recommendation"] != "reject"


def test_a_verification_that_is_wrong_is_rejected(exchange: ExchangeFolder) -> None:
    id = str(uuid.uuid4())
    document = {"type": "memory_verify", "version": "0.1", "header": {"verify_id": id, "timestamp": "never"}}
    exchange.path("verify", id).write_text(json.dumps(document), "utf-8")
    (answered,) = exchange.watch()
    assert answered.status == "reject"
    assert exchange.response(id, "verify-result")["results"]["signature"]["status"] == "fail"


def test_requests_are_answered_oldest_first(exchange: ExchangeFolder) -> None:
    ids = [exchange.ask() for _ in range(5)]
    for age, id in enumerate(ids):
        os.utime(exchange.path("request", id), ns=(0, 10**18 - age * 10**9))
    assert [a.request for a in exchange.watch()] == [f"request-{id}.json" for id in reversed(ids)]


def test_each_request_is_answered_once(exchange: ExchangeFolder) -> None:
    id = exchange.ask()
    assert len(exchange.watch(looks=4)) == 1
    before = exchange.path("response", id).stat()
    assert exchange.watch() == []
    after = exchange.path("response", id).stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_a_request_still_being_written_is_waited_for(exchange: ExchangeFolder) -> None:
    id = str(uuid.uuid4())
    data = json.dumps(request(id=id)).encode()
    path = exchange.path("request", id)
    path.write_bytes(b"")

    def write(look: int) -> None:
        # Slower than the patience with a file that does not change, but it does change.
        if look % (LOOKS - 1) == 0:
            done = path.stat().st_size
            path.write_bytes(data[: done + len(data) // 4 + 1])

    (answered,) = exchange.watch(looks=LOOKS * 5, between=write)
    assert answered.status == "success"
    assert exchange.said == []


@pytest.mark.parametrize("content", [b"", b"{", b'{"type": "memory_request"', b"\xff\xfe", b"[NaN]", b"{}}"])
def test_what_stays_unreadable_is_an_error_once(exchange: ExchangeFolder, content: bytes) -> None:
    id = str(uuid.uuid4())
    exchange.path("request", id).write_bytes(content)
    assert exchange.watch(looks=LOOKS - 1) == []
    (answered,) = exchange.watch(looks=LOOKS * 3)
    assert answered.status == "error"
    status = exchange.response(id)["status"]
    assert status["code"] == "error"
    assert "not valid JSON" in status["message"] or "UTF-8" in status["message"]
    assert exchange.watch(looks=LOOKS * 2) == []


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"[]", "no JSON object"),
        (b'"text"', "no JSON object"),
        (b"{}", "header.request_id must be"),
        (b'{"header": 7, "type": ["memory_request"]}', "header.request_id must be"),
        (b"[" * 100_000, "nested too deeply"),
    ],
)
def test_what_is_no_request_is_an_error(exchange: ExchangeFolder, content: bytes, says: str) -> None:
    id = str(uuid.uuid4())
    exchange.path("request", id).write_bytes(content)
    exchange.watch()
    assert says in exchange.response(id)["status"]["message"]


@pytest.mark.parametrize("inner", ["../../escaped", "/tmp/escaped", "b2f5ff47-4367-41b3-8b6b-9d1c2e3f4a5b", "", None])
def test_the_id_inside_must_be_the_one_in_the_name(exchange: ExchangeFolder, inner: Any) -> None:
    id = str(uuid.uuid4())
    document = request()
    document["header"]["request_id"] = inner
    exchange.path("request", id).write_text(json.dumps(document), "utf-8")
    before = exchange.memories()
    exchange.watch()
    assert "as in the file's name" in exchange.response(id)["status"]["message"]
    assert exchange.names() == {f"request-{id}.json", f"response-{id}.json"}
    assert {entry.name for entry in exchange.folder.parent.iterdir()} == {"exchange"}
    assert exchange.memories() == before


def test_a_schema_error_and_an_expired_ttl_are_errors(exchange: ExchangeFolder) -> None:
    wrong = exchange.ask(query={"natural": 7})
    old = exchange.ask(header={"timestamp": "2020-01-01T00:00:00Z", "ttl_seconds": 5})
    exchange.watch()
    assert "natural" in exchange.response(wrong)["status"]["message"]
    assert exchange.response(old)["status"]["code"] == "error"
    assert exchange.response(old)["results"] == []


def test_an_id_used_again_for_something_else_is_declined(exchange: ExchangeFolder) -> None:
    id = exchange.ask("what about tea?")
    exchange.watch()
    first = exchange.response(id)
    exchange.path("response", id).unlink()
    exchange.watch()
    assert exchange.response(id) == first, "the same request has the same answer"
    exchange.path("response", id).unlink()
    exchange.ask("what else?", id=id)
    exchange.watch()
    assert exchange.response(id)["status"]["code"] == "declined"
    assert exchange.response(id)["results"] == []


def test_links_pipes_and_folders_are_left_alone(exchange: ExchangeFolder, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.json"
    ids = [str(uuid.uuid4()) for _ in range(4)]
    elsewhere.write_text(json.dumps(request(id=ids[0])), "utf-8")
    exchange.path("request", ids[0]).symlink_to(elsewhere)
    exchange.path("request", ids[1]).mkdir()
    os.mkfifo(exchange.path("request", ids[2]))
    exchange.path("request", ids[3]).symlink_to(tmp_path / "nowhere")
    before = exchange.names()
    assert exchange.watch(looks=3) == []
    assert exchange.names() == before
    assert len(exchange.said) == 4, "each is told of once"
    assert all("not a regular file" in text for text in exchange.said)


@pytest.mark.parametrize(
    "name",
    ["request-1.json", "request-{}.json.bak", "a-request-{}.json", "REQUEST-{}.json", "response-{}.json", "notes.txt",
     ".request-{}.json", "request-{}.json\n", "request-{}x.json", "request-..%2f{}.json"],
)  # fmt: skip
def test_other_files_are_left_alone(exchange: ExchangeFolder, name: str) -> None:
    path = exchange.folder / name.format(uuid.uuid4())
    path.write_text(json.dumps(request()), "utf-8")
    assert exchange.watch(looks=2) == []
    assert exchange.names() == {path.name}


def test_upper_case_is_another_name_and_said_so(exchange: ExchangeFolder) -> None:
    id = str(uuid.uuid4()).upper()
    exchange.path("request", id).write_text(json.dumps(request(id=id)), "utf-8")
    assert exchange.watch() == []
    (said,) = exchange.said
    assert "lower case" in said


def test_a_file_that_is_too_large_is_an_error(exchange: ExchangeFolder) -> None:
    id = exchange.ask("tea " * (MAX_BYTES // 4))
    (answered,) = exchange.watch()
    assert answered.status == "error"
    assert "at most 1,048,576 bytes" in exchange.response(id)["status"]["message"]


def test_a_folder_that_goes_away_and_comes_back_is_told_of_once(exchange: ExchangeFolder) -> None:
    aside = exchange.folder.with_name("aside")

    def move(look: int) -> None:
        if look == 1:
            exchange.folder.rename(aside)
        elif look == 5:
            aside.rename(exchange.folder)
            exchange.ask()

    assert len(exchange.watch(looks=8, between=move)) == 1
    assert len(exchange.said) == 1
    assert "cannot read" in exchange.said[0]


def test_an_answer_that_cannot_be_written_is_written_later(exchange: ExchangeFolder) -> None:
    id = exchange.ask()
    in_the_way = exchange.folder / f".response-{id}.json.tmp"
    in_the_way.mkdir()

    def clear(look: int) -> None:
        if look == 3:
            assert not exchange.path("response", id).exists()
            in_the_way.rmdir()

    (answered,) = exchange.watch(looks=6, between=clear)
    assert answered.status == "success"
    assert len(exchange.said) == 1
    assert "cannot be written" in exchange.said[0]


def test_one_who_asks_too_often_waits(exchange: ExchangeFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMMONPLACE_MRP_REQUESTS_PER_MINUTE", "2")
    for _ in range(4):
        exchange.ask()
    assert 2 <= len(exchange.watch(looks=3)) < 4
    assert all("it is tried again" in text for text in exchange.said)
    monkeypatch.delenv("COMMONPLACE_MRP_REQUESTS_PER_MINUTE")
    exchange.watch()
    assert len(exchange.names()) == 8, "nothing was lost"


def test_answering_once_waits_for_those_who_asked_too_often(exchange: ExchangeFolder) -> None:
    asked: list[str] = []

    async def busy(document: Document) -> Document:
        asked.append(document["header"]["request_id"])
        if len(asked) <= 3:
            raise RateLimited(f"try again in {len(asked)} s", retry_after=1)
        raise Unavailable("done")

    exchange.ask()
    with RequestFolder(exchange.folder, busy, responder="keeper", report=exchange.said.append) as folder:
        asyncio.run(watch(folder, LimitedPause(9), lambda answered: None, once=True))
    assert len(asked) == 4
    assert len(exchange.said) == 1, "the same thing is said once"


def test_a_failure_of_ours_is_answered_and_not_quoted(exchange: ExchangeFolder) -> None:
    async def breaks(document: Document) -> Document:
        raise RuntimeError("Alice's diary")

    exchange.ask()
    with RequestFolder(exchange.folder, breaks, responder="keeper", report=exchange.said.append) as folder:
        asyncio.run(watch(folder, LimitedPause(9), lambda answered: None, once=True))
    (written,) = [path.read_text("utf-8") for path in exchange.folder.iterdir() if "response" in path.name]
    assert internal_error().message in written
    assert "diary" not in written + "".join(exchange.said)


def test_where_an_identity_is_required_nobody_in_particular_is_declined(
    exchange: ExchangeFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMMONPLACE_MRP_REQUIRE_IDENTITY", "true")
    id = exchange.ask()
    assert [answered.status for answered in exchange.watch()] == ["declined"]
    assert "proves an identity" in exchange.response(id)["status"]["message"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_told_of_once(exchange: ExchangeFolder) -> None:
    id = exchange.ask()
    exchange.path("request", id).chmod(0)
    assert exchange.watch(looks=3) == []
    (said,) = exchange.said
    assert "cannot be read" in said


def test_a_planted_link_is_not_written_through(exchange: ExchangeFolder, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("untouched", "utf-8")
    id = exchange.ask()
    (exchange.folder / f".response-{id}.json.tmp").symlink_to(victim)
    (answered,) = exchange.watch()
    assert victim.read_text("utf-8") == "untouched"
    assert not (exchange.folder / answered.response).is_symlink()


def test_one_process_at_a_time(exchange: ExchangeFolder) -> None:
    with (
        RequestFolder(exchange.folder, None, responder="keeper", report=exchange.said.append),  # type: ignore[arg-type]
        pytest.raises(Unavailable, match="another process already answers"),
    ):
        exchange.watch()
    assert exchange.watch() == []


def test_a_path_that_is_no_folder_is_refused(exchange: ExchangeFolder, tmp_path: Path) -> None:
    for path, says in ((tmp_path / "missing", "there is no folder .*mkdir"), (Path(__file__), "is not a folder; give")):
        with pytest.raises(ValidationError, match=says):
            ExchangeFolder(exchange.data, path).watch()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=12,
)
PARTS = st.sampled_from(["type", "version", "header", "requester", "query", "response_preferences", "signature"])


@pytest.mark.slow
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(forged=st.lists(st.dictionaries(PARTS, JSON, max_size=4), min_size=1, max_size=6))
def test_no_forged_file_ends_the_watch_or_stores_anything(exchange: ExchangeFolder, forged: list[Document]) -> None:
    ids = []
    for changes in forged:
        id = str(uuid.uuid4())
        document = {**request(id=id), **changes}
        if isinstance(document["header"], dict):
            document["header"] = {"timestamp": iso(system_clock()), **document["header"], "request_id": id}
        exchange.path("request", id).write_text(json.dumps(document), "utf-8")
        ids.append(id)
    before = exchange.memories()
    exchange.watch()
    assert exchange.said == []
    for id in ids:
        assert exchange.response(id)["header"]["request_id"] == id
    assert exchange.memories() == before
    assert not [text for text in exchange.said if "bug" in text]


# processes, as users start them


_KILLED = """
import os, signal, sys
from commonplace.serve import mrp_files
from commonplace.cli import main

class KillingOs:
    "The os module, which kills the process at its n-th call of those that write."
    left = int(sys.argv[1])

    def __getattr__(self, name):
        found = getattr(os, name)
        if name not in ("open", "fdopen", "fsync", "rename", "unlink", "scandir"):
            return found
        def call(*args, **more):
            KillingOs.left -= 1
            if KillingOs.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            result = found(*args, **more)
            KillingOs.left -= 1
            if KillingOs.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return result
        return call

mrp_files.os = KillingOs()
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.slow
def test_killed_at_any_step_every_request_is_answered_once_and_whole(exchange: ExchangeFolder) -> None:
    ids = [exchange.ask(f"what about tea, {n}?") for n in range(2)]
    args = ["mrp", "watch", str(exchange.folder), "--once", "--agent", "keeper", "--json"]
    seen: dict[str, bytes] = {}
    kills = 0
    for step in range(1, 200):
        done = subprocess.run(
            [sys.executable, "-c", _KILLED, str(step), *args], env=environment(exchange.data), capture_output=True,
            text=True, timeout=SECONDS, check=False,
        )  # fmt: skip
        for id in ids:
            if exchange.path("response", id).exists():
                content = exchange.path("response", id).read_bytes()
                assert seen.setdefault(id, content) == content, "an answer never changes once it is there"
                assert exchange.response(id)["status"]["code"] == "success"
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL, done.stderr
        kills += 1
        if kills % 7:  # mostly from the start again, so that every step is met with nothing done yet
            for id in ids:
                exchange.path("response", id).unlink(missing_ok=True)
    else:
        raise AssertionError("it never ended by itself")
    assert kills > 12
    assert set(seen) == set(ids)
    assert exchange.names() == {f"{kind}-{id}.json" for kind in ("request", "response") for id in ids}


def test_it_watches_until_it_is_told_to_stop(exchange: ExchangeFolder) -> None:
    args = command("mrp", "watch", str(exchange.folder), "--agent", "keeper", "--interval", "0.01")
    with subprocess.Popen(
        args, env=environment(exchange.data), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stderr is not None
            assert process.stdout is not None
            assert "answering requests" in process.stderr.readline()
            for _ in range(2):
                id = exchange.ask()
                assert process.stdout.readline() == f"request-{id}.json → response-{id}.json  success, 1 memory\n"
                assert exchange.response(id)["status"]["code"] == "success"
            process.send_signal(signal.SIGTERM)
            assert process.wait(SECONDS) == 0
            assert (process.stdout.read(), process.stderr.read()) == ("", "")
        finally:
            process.kill()
