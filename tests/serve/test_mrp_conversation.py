"""Two servers hold an MRP conversation: asked, answered, verified, vouched for, kept, found, and passed on unharmed."""

from __future__ import annotations

import asyncio
import http.client
import json
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from server_process import ServerProcess, cli, run_server

from commonplace import Memory
from commonplace.dialects.mrp import Mrp, signatures
from commonplace.dialects.mrp.client import PeerServer, ask, keep, question, verify
from commonplace.dialects.mrp.response_check import SKEW_MS, check_response
from commonplace.wire.errors import Fault, Unavailable
from commonplace.wire.keys import new_private, public_of
from commonplace.wire.record import Principal, system_clock
from commonplace.wire.times import iso, milliseconds

Document = dict[str, Any]

PEERS = {"COMMONPLACE_MRP_PUBLIC": "true", "COMMONPLACE_TOKEN_REQUIRED": "true"}
SAID = "Pruning is identity: what you forget defines you"
QUESTION = "what is known about pruning and identity?"


DORA = new_private()
#: Dora's, which Alice's librarian has received with a witness and a chain, and tells everyone.
WITNESSED = signatures.sign_attestation(
    {
        "id": "dora-1", "agent": "dora", "created_at": "2026-02-07T09:00:00Z",
        "claim": {"type": "observation", "content": "Herons stand still", "references": ["https://example.org/heron"]},
        "salience": {"why_kept": "seen", "category": "foundational", "confidence": 0.9,
                     "expected_decay": {"type": "permanent", "until": None}, "supersedes": []},
        "provenance": {"source": "aggregated", "witnesses": [{"agent": "eve", "timestamp": "2026-02-07T09:00:01Z"}],
                       "chain": ["dora-0"]},
    },
    DORA,
)  # fmt: skip


def key_of(data: Path) -> str:
    found: str = cli(data, "identity")["public_key"]
    return found


class PeerServers:
    """Alice's server, whose agent `keeper` remembers; Bob's, whose agent `bob` asks; and Carol, who has no server."""

    def __init__(self, alice: ServerProcess, bob: ServerProcess, carol: Path) -> None:
        self.alice, self.bob, self.carol = alice, bob, carol
        self.keys = {"alice": key_of(alice.data), "bob": key_of(bob.data), "carol": key_of(carol)}


@pytest.fixture(scope="module")
def peers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PeerServers]:
    alice, bob, carol = (tmp_path_factory.mktemp(name) for name in ("alice", "bob", "carol"))
    cli(alice, "trust", "add", "bob", "--level", "2", "--key", key_of(bob), "--voucher")
    for args in (
        (SAID, "--share-with", "*", "--source", "research/pruning.md"),
        ("Pruning identity is a secret of mine",),
        ("Pruning is what Bob may know, too", "--share-with", "bob"),
    ):
        cli(alice, "remember", *args, "--agent", "keeper")
    asyncio.run(_receive(alice, WITNESSED))
    with run_server(alice, **PEERS) as first, run_server(bob, **PEERS) as second:
        yield PeerServers(first, second, carol)


async def _receive(data: Path, attestation: Document) -> None:
    async with Memory("keeper", data=data, embedder="hashing") as memory:
        mrp = Mrp(await memory.engine(), Principal())
        await mrp.keep(attestation, from_agent="dora", agent="librarian", share_with=["*"])


def attested(heard: Document) -> list[str]:
    return [result["attestation"]["claim"]["content"] for result in heard["response"]["results"]]


def test_a_memory_travels_and_its_signature_with_it(peers: PeerServers) -> None:
    alice, bob = peers.alice, peers.bob
    asked = ("ask", alice.url, QUESTION, "--responder-agent", "keeper", "--agent", "bob")

    # Request → signed response, of what Bob may know and nothing else; his key is bound, so he is known.
    heard = cli(bob.data, *asked, "--verify", "--keep", "--share-with", "*", "--key-pin", peers.keys["alice"])
    assert set(attested(heard)) == {SAID, "Pruning is what Bob may know, too"}
    assert heard["response"]["meta"]["trust_level_used"] == 2
    assert heard["response"]["responder"] == {"agent_id": "keeper", "public_key": peers.keys["alice"]}
    assert heard["examined"]["signed"]
    assert heard["examined"]["key_known"]
    assert signatures.verify_response(heard["response"], peers.keys["alice"])
    assert [each["state"] for each in heard["examined"]["results"]] == ["verified", "verified"]

    # Verified again by the responder, and kept.
    assert all(v["aggregate"]["recommendation"] != "reject" for v in heard["verifications"])
    assert all(v["results"]["signature"]["status"] == "pass" for v in heard["verifications"])
    kept = [each["memory_id"] for each in heard["kept"]]
    assert heard["not_kept"] == ["", ""]
    again = cli(bob.data, *asked, "--keep")
    assert {each["memory_id"] for each in again["kept"]} == set(kept), "kept once"
    assert not any(each["created"] for each in again["kept"])

    # A vouch of Bob's for the keeper counts with Alice, who bound his key, and her verifications say so.
    vouched = cli(
        bob.data, "mrp", "vouch", alice.url, "--agent", "bob", "--subject", "keeper", "--domain", "memory-systems",
        "--level", "competent", "--statement", "What it told me was so", "--subject-key", peers.keys["alice"],
        "--ref", heard["request"]["header"]["request_id"], "--confidence", "high",
    )  # fmt: skip
    assert vouched["counted"] is True
    verified = cli(bob.data, *asked, "--verify")["verifications"][0]["results"]["vouches"]
    assert (verified["status"], verified["trusted_vouchers"]) == ("pass", ["bob"])

    # Found by ordinary recall at Bob's, with where it is from.
    found = cli(bob.data, "recall", "pruning identity", "--agent", "bob")["results"]
    assert {hit["id"] for hit in found} == set(kept)
    memory = asyncio.run(_held(bob.data, kept[attested(heard).index(SAID)]))
    assert memory.metadata["author"] == "keeper"
    assert memory.provenance["source"] == "received"
    assert memory.provenance["from"] == "keeper"
    assert memory.provenance["witnesses"] == []
    (link,) = memory.provenance["chain"]
    assert (link["agent"], link["from"]) == ("keeper", "keeper")

    # Passed on by Bob's server to Carol: signed anew as an answer, but each memory still as Alice's keeper signed it.
    onward = cli(peers.carol, "ask", bob.url, QUESTION, "--responder-agent", "bob", "--agent", "carol", "--keep")
    assert SAID in attested(onward)
    assert onward["response"]["responder"]["public_key"] == peers.keys["bob"]
    original = {r["attestation"]["id"]: r["attestation"] for r in heard["response"]["results"]}
    for result, state in zip(onward["response"]["results"], onward["examined"]["results"], strict=True):
        assert result["attestation"] == original[result["attestation"]["id"]], "word for word"
        assert signatures.verify_attestation(result["attestation"], peers.keys["alice"])
        assert (state["state"], state["public_key"]) == ("verified", peers.keys["alice"])
    carols = asyncio.run(_held(peers.carol, onward["kept"][0]["memory_id"], "carol"))
    assert carols.provenance["from"] == "bob"


async def _held(data: Path, id: str, agent: str = "bob") -> Any:
    async with Memory(agent, data=data, embedder="hashing") as memory:
        return await (await memory.engine()).get(Principal(), agent, id)


def test_witnesses_and_chain_travel_along(peers: PeerServers) -> None:
    """Dora → Alice's librarian → Bob → Carol: three hands, one signature."""
    asked = ("--verify", "--keep", "--share-with", "*")
    first = cli(peers.bob.data, "ask", peers.alice.url, "herons", "--responder-agent", "librarian", "--agent", "bob",
                *asked)  # fmt: skip
    second = cli(peers.carol, "ask", peers.bob.url, "--keyword", "herons", "--responder-agent", "bob", "--agent",
                 "carol", *asked)  # fmt: skip
    for heard in (first, second):
        (result,) = heard["response"]["results"]
        assert result["attestation"] == WITNESSED
        assert signatures.verify_attestation(result["attestation"], public_of(DORA))
        assert heard["examined"]["results"][0]["state"] == "verified"
        assert heard["examined"]["results"][0]["public_key"] == public_of(DORA)
    (kept,) = second["kept"]
    (hit,) = cli(peers.carol, "recall", "herons", "--agent", "carol")["results"][:1]
    assert hit["id"] == kept["memory_id"]
    memory = asyncio.run(_held(peers.carol, kept["memory_id"], "carol"))
    assert memory.provenance["witnesses"] == WITNESSED["provenance"]["witnesses"]
    assert memory.provenance["chain"] == ["dora-0", {"attestation": "dora-1", "agent": "dora", "from": "bob"}]
    assert memory.provenance["attestation"] == WITNESSED


def test_a_stranger_hears_only_what_is_for_everyone(peers: PeerServers) -> None:
    heard = cli(peers.carol, "ask", peers.alice.url, QUESTION, "--responder-agent", "keeper", "--agent", "carol")
    assert attested(heard) == [SAID]
    # A name alone is nobody: the one who has a key bound here must sign with it.
    posing = cli(peers.carol, "ask", peers.alice.url, QUESTION, "--responder-agent", "keeper", "--agent", "bob")
    assert attested(posing) == [SAID]
    assert posing["response"]["meta"]["trust_level_used"] == 0


def test_a_known_key_must_be_the_one_that_signs(peers: PeerServers, tmp_path: Path) -> None:
    cli(tmp_path, "trust", "add", "keeper", "--level", "1", "--key", peers.keys["alice"])
    args = ("ask", peers.alice.url, QUESTION, "--responder-agent", "keeper")
    assert cli(tmp_path, *args)["examined"]["key_known"] is True
    cli(tmp_path, "trust", "add", "keeper", "--level", "1", "--key", peers.keys["bob"], "--replace")
    with pytest.raises(AssertionError, match="does not answer as the holder of the expected key"):
        cli(tmp_path, *args)


# what happens on the way


@contextmanager
def meddler(target: ServerProcess, change: Callable[[str, bytes], bytes]) -> Iterator[str]:
    """A proxy in front of a server, that changes answers; its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            connection = http.client.HTTPConnection("127.0.0.1", target.port, timeout=30)
            connection.request("POST", self.path, body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            data = change(self.path, answer.read())
            connection.close()
            self.send_response(answer.status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def covered(response: Document) -> Document:
    """What must never get through changed: all that MRP signs, and what says whose answer to what it is.

    Not the key: the one that was pinned has been used, whatever the answer says.
    """
    header, responder = response["header"], response["responder"]
    return {
        "results": response["results"], "meta": response["meta"], "timestamp": header["timestamp"],
        "request_id": header["request_id"], "agent": responder["agent_id"],
        "code": response["status"]["code"],
    }  # fmt: skip


def recorded(peers: PeerServers) -> tuple[Document, Document]:
    async def run() -> tuple[Document, Document]:
        async with PeerServer(peers.alice.url, agent="keeper") as peer:
            heard = await ask(peer, question("carol", QUESTION, now=system_clock()))
            return heard.request, heard.response

    return asyncio.run(run())


def test_a_byte_changed_anywhere_is_caught(peers: PeerServers) -> None:
    """Every byte of a real answer, each changed in several ways: what is signed never comes through different."""
    request, response = recorded(peers)
    data = json.dumps(response).encode()
    true = covered(response)
    random.seed(7)
    harmless = 0
    for place in range(len(data)):
        for flip in {1 << random.randrange(7), 1 << random.randrange(7)}:
            changed = data[:place] + bytes([data[place] ^ flip]) + data[place + 1 :]
            try:
                document = json.loads(changed)
            except (ValueError, RecursionError):
                continue
            found = check_response(
                request, document, now=system_clock(), pin=peers.keys["alice"], known={},
                responder="keeper",
            )  # fmt: skip
            if found.problem is None:
                assert covered(document) == true
                assert document["signature"]["signed_fields"] == response["signature"]["signed_fields"]
                harmless += 1
    # Outside of what MRP signs are only the schema's address, the version, the response's own id and words of status.
    assert harmless < len(data) // 4


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.floats(0, 1, exclude_max=True), flip=st.integers(1, 255))
def test_nothing_changed_on_the_way_is_kept(peers: PeerServers, tmp_path: Path, place: float, flip: int) -> None:
    answers: list[Document] = []

    def change(path: str, data: bytes) -> bytes:
        answers.append(json.loads(data))
        at = int(place * len(data))
        return data[:at] + bytes([data[at] ^ flip]) + data[at + 1 :]

    async def run(url: str) -> None:
        async with (
            Memory("carol", data=tmp_path, embedder="hashing") as memory,
            PeerServer(url, agent="keeper") as peer,
        ):
            engine = await memory.engine()
            before = {m["id"] for m in (await memory.list(limit=1000))["memories"]}
            try:
                heard = await ask(peer, question("carol", QUESTION, now=system_clock()), pin=peers.keys["alice"])
            except Fault:
                assert {m["id"] for m in (await memory.list(limit=1000))["memories"]} == before
                return
            assert covered(heard.response) == covered(answers[0])
            await keep(Mrp(engine, Principal()), heard, agent="carol")
            (kept,) = (await memory.list(limit=1000))["memories"]
            assert kept["content"] == SAID

    with meddler(peers.alice, change) as url:
        asyncio.run(run(url))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            lambda r: r["results"][0]["attestation"]["claim"].update(content="Forget nothing"),
            "signature does not match",
        ),
        (lambda r: r["results"][0].update(relevance_score=0.99), "signature does not match"),
        (lambda r: r["results"].clear() or r["meta"].update(returned=0), "carries no results"),
        (lambda r: r["results"].append(r["results"][0]), "not carry as many results"),
        (lambda r: r["meta"].update(trust_level_used=3), "signature does not match"),
        (lambda r: r["header"].update(request_id="7f2c1a3e-5b1d-4c53-9a6e-2f6a0c1d9b11"), "to another request"),
        (lambda r: r["header"].update(timestamp="2020-01-01T00:00:00Z"), "older than the question"),
        (lambda r: r["header"].update(timestamp="2099-01-01T00:00:00Z"), "in the future"),
        (lambda r: r["responder"].update(agent_id="mallory"), "by another agent"),
        (lambda r: r["status"].update(code="declined"), "yet it carries results"),
        (lambda r: r["signature"].update(value="AAAA"), "signature"),
        (lambda r: r["signature"].update(signed_fields=["meta"]), "signed_fields"),
        (lambda r: r["signature"].update(algorithm="none"), "not a valid MEMORY_RESPONSE"),
        (lambda r: r.pop("signature"), "is not signed"),
        (lambda r: r.pop("meta"), "not a valid MEMORY_RESPONSE"),
        (lambda r: r.clear(), "not a valid MEMORY_RESPONSE"),
    ],
)
def test_each_kind_of_meddling_is_named(peers: PeerServers, change: Callable[[Document], Any], says: str) -> None:
    request, response = recorded(peers)
    change(response)
    found = check_response(request, response, now=system_clock(), pin=peers.keys["alice"], known={}, responder="keeper")
    assert found.problem is not None
    assert says in found.problem


def test_signed_by_someone_else_is_caught_where_the_key_is_known(peers: PeerServers) -> None:
    request, response = recorded(peers)
    mallory = "A" * 43 + "="
    response["results"][0]["attestation"]["claim"]["content"] = "Forget nothing"
    forged = signatures.sign_response(response, mallory)
    known = {"keeper": peers.keys["alice"]}
    found = check_response(request, forged, now=system_clock(), known=known)
    assert "another key" in (found.problem or "")
    # Without a key known beforehand the answer is its signer's, but the memory in it is nobody's.
    unknown = check_response(request, forged, now=system_clock(), known={})
    assert (unknown.problem, unknown.signed, unknown.known) == (None, True, False)
    assert [verdict.state for verdict in unknown.verdicts] == ["wrong"]


def test_an_answer_to_an_earlier_question_is_not_taken_for_this_one(peers: PeerServers) -> None:
    """A recording, with the id put right: its signed time gives it away."""
    request, response = recorded(peers)
    later = milliseconds(response["header"]["timestamp"], "timestamp") + SKEW_MS + 1
    fresh = {**request, "header": {**request["header"], "timestamp": iso(later)}}
    found = check_response(fresh, response, now=later, known={})
    assert "older than the question" in (found.problem or "")


def test_a_wrong_memory_in_a_right_answer_is_not_kept(peers: PeerServers, tmp_path: Path) -> None:
    """The responder itself passes on something changed: its answer is signed, the memory in it is not its author's."""
    request, response = recorded(peers)
    alice = (peers.alice.data / "identity.key").read_text("ascii").strip()
    attestation = response["results"][0]["attestation"]
    attestation["claim"]["content"] = "Forget nothing"
    attestation["signatures"]["hash"] = signatures.attestation_hash(attestation)
    found = check_response(request, signatures.sign_response(response, alice), now=system_clock(), known={})
    assert found.problem is None
    assert [(v.state, v.detail) for v in found.verdicts] == [("wrong", "its signature does not match")]

    async def run() -> None:
        from commonplace.dialects.mrp.client import CheckedAnswer

        async with Memory("carol", data=tmp_path, embedder="hashing") as memory:
            heard = CheckedAnswer(request, response, found)
            reasons = await keep(Mrp(await memory.engine(), Principal()), heard, agent="carol")
            assert reasons == ["its signature does not match"]
            assert heard.kept == [None]
            assert (await memory.list())["memories"] == []

    asyncio.run(run())


def test_a_verification_of_something_else_is_refused(peers: PeerServers) -> None:
    def change(path: str, data: bytes) -> bytes:
        document = json.loads(data)
        if document.get("type") == "verify_result":
            document["header"]["verify_id"] = "7f2c1a3e-5b1d-4c53-9a6e-2f6a0c1d9b11"
        return json.dumps(document).encode()

    async def run(url: str) -> None:
        async with PeerServer(url, agent="keeper") as peer:
            # The meddler stands between Carol and Alice, whose key Carol knows.
            heard = await ask(peer, question("carol", QUESTION, now=system_clock()), pin=peers.keys["alice"])
            with pytest.raises(Unavailable, match="another verification"):
                await verify(peer, heard)

    with meddler(peers.alice, change) as url:
        asyncio.run(run(url))


@pytest.mark.parametrize(
    "answer", [b"", b"null", b"[]", b"<html>", b"[" * 100_000, b'{"error": "text"}', b'{"type": "memory_response"}']
)
def test_an_answer_that_is_no_answer_is_said_plainly(peers: PeerServers, answer: bytes) -> None:
    async def run(url: str) -> None:
        async with PeerServer(url) as peer:
            with pytest.raises(Unavailable) as caught:
                await ask(peer, question("carol", QUESTION, now=system_clock()), pin=peers.keys["alice"])
            assert len(caught.value.message) < 400

    with meddler(peers.alice, lambda path, data: answer) as url:
        asyncio.run(run(url))


def test_an_answer_without_an_end_is_not_read_to_it(peers: PeerServers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("commonplace.dialects.mrp.client.MAX_BYTES", 1000)

    async def run(url: str) -> None:
        async with PeerServer(url) as peer:
            with pytest.raises(Unavailable, match="more than 1,000 bytes"):
                await ask(peer, question("carol", QUESTION, now=system_clock()), pin=peers.keys["alice"])

    with meddler(peers.alice, lambda path, data: b" " * 5000) as url:
        asyncio.run(run(url))
