"""A server that Bob asks forwards his signed bytes to Alice, to read what she shares with Bob alone."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parents[1] / "serve"))
from server_process import SECONDS, ServerProcess, cli, command, environment, run_server

from commonplace.dialects.mrp import signatures
from commonplace.dialects.mrp.client import question, verification
from commonplace.wire.keys import new_private, public_of
from commonplace.wire.record import system_clock

Document = dict[str, Any]

FOR_ALL = "Pruning is taught in every garden school"
FOR_BOB = "Pruning of the old pear tree is planned for Sunday"
OF_ALICE = "Pruning shears are hidden behind the shed"
QUESTION = "what is known about pruning?"
PEERS = {"COMMONPLACE_MRP_PUBLIC": "true", "COMMONPLACE_TOKEN_REQUIRED": "true"}
BOB = new_private()


class Relay:
    """Mallory's server: sends on what it gets, after `change`, and keeps what comes back."""

    def __init__(self, target: ServerProcess) -> None:
        self.target = target
        self.change: Callable[[Document], Document] = dict
        self.headers: dict[str, str] = {}
        self.got: list[bytes] = []
        relay = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                status, answer = relay.forward(self.path, relay.change(body))
                self.send_response(status)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *args: Any) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def forward(self, path: str, body: Document) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.target.port, timeout=SECONDS)
        connection.request("POST", path, json.dumps(body).encode(), self.headers)
        response = connection.getresponse()
        answer = response.read()
        connection.close()
        self.got.append(answer)
        return response.status, answer

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture(scope="module")
def alice(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    data = tmp_path_factory.mktemp("alice")
    cli(data, "trust", "add", "bob", "--level", "3", "--key", public_of(BOB))
    for said, *shared in ((FOR_ALL, "--share-with", "*"), (FOR_BOB, "--share-with", "bob"), (OF_ALICE,)):
        cli(data, "remember", said, *shared, "--agent", "keeper")
    with run_server(data, **PEERS) as server:
        yield server


@pytest.fixture(scope="module")
def bob(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = tmp_path_factory.mktemp("bob")
    key = data / "identity.key"
    key.write_text(BOB + "\n")
    key.chmod(0o600)
    return data


@pytest.fixture
def mallory(alice: ServerProcess) -> Iterator[Relay]:
    relay = Relay(alice)
    yield relay
    relay.close()


def ask(bob: Path, url: str, *more: str) -> subprocess.CompletedProcess[str]:
    args = command("ask", url, QUESTION, "--agent", "bob", "--json", *more)
    return subprocess.run(args, env=environment(bob), capture_output=True, text=True, timeout=SECONDS, check=False)


def without(*names: str) -> Callable[[Document], Document]:
    return lambda sent: {name: value for name, value in sent.items() if name not in names}


def test_bob_himself_is_shown_what_is_shared_with_him(alice: ServerProcess, bob: Path) -> None:
    asked = ask(bob, alice.url, "--verify")
    assert FOR_BOB in asked.stdout
    assert FOR_ALL in asked.stdout
    assert OF_ALICE not in asked.stdout
    assert [v["results"]["signature"]["status"] for v in json.loads(asked.stdout)["verifications"]] == ["pass", "pass"]


MEDDLING: dict[str, Callable[[Relay], Callable[[Document], Document]]] = {
    "as it came": lambda relay: dict,
    "without audience": lambda relay: without("audience"),
    "with another audience": lambda relay: lambda sent: {**sent, "audience": relay.target.url},
    "without signature": lambda relay: without("signature"),
    "without both": lambda relay: without("signature", "audience"),
    "for someone else, unsigned": lambda relay: lambda s: {**without("signature")(s), "audience": relay.target.url},
}


def test_what_bob_sends_to_a_relay_is_refused_by_alice(mallory: Relay, bob: Path) -> None:
    asked = ask(bob, mallory.url, "--verify")
    assert asked.returncode != 0
    (heard,) = mallory.got
    assert json.loads(heard)["error"]["code"] == "forbidden"


@pytest.mark.parametrize("host", ["its own", "the relay's", "Alice's"])
@pytest.mark.parametrize("how", MEDDLING)
def test_a_relay_reads_nothing_but_what_everyone_may(mallory: Relay, how: str, host: str) -> None:
    names = {"the relay's": mallory.url, "Alice's": mallory.target.url}
    if host in names:
        mallory.headers = {"Host": names[host].removeprefix("http://")}
    sent = signatures.sign_request(question("bob", QUESTION, now=system_clock(), audience=mallory.url), BOB)
    mallory.forward("/mrp/request", MEDDLING[how](mallory)(sent))
    heard = b"\n".join(mallory.got).decode()
    assert FOR_BOB not in heard
    assert OF_ALICE not in heard


def test_a_relay_cannot_have_verified_what_only_bob_may_see(alice: ServerProcess, mallory: Relay, bob: Path) -> None:
    results = json.loads(ask(bob, alice.url).stdout)["response"]["results"]
    (secret,) = [each for each in results if each["attestation"]["claim"]["content"] == FOR_BOB]
    # Bob asks Mallory to verify it; she forwards his bytes, with and without whom they are meant for.
    for audience in ({"audience": mallory.url}, {}):
        asked = {**verification("bob", secret, now=system_clock()), **audience}
        status, answer = mallory.forward("/mrp/verify", signatures.sign_request(asked, BOB))
        assert status == 403 or json.loads(answer)["aggregate"] == {"trust_score": 0.0, "recommendation": "reject"}


@pytest.mark.parametrize("operation", ["request", "verify"])
def test_what_is_meant_for_another_is_refused_and_told_what_to_do(
    alice: ServerProcess, mallory: Relay, operation: str
) -> None:
    made = question("bob", QUESTION, now=system_clock())
    if operation == "verify":
        result = {"memory_id": str(uuid.uuid4()), "attestation": {}}
        made = verification("bob", result, now=system_clock())
    sent = signatures.sign_request({**made, "audience": mallory.url}, BOB)
    refused = alice.post(f"/mrp/{operation}", sent)
    assert (refused.status, refused.code) == (403, "forbidden")
    assert "origins" in refused.json["error"]["message"]


def test_a_client_that_does_not_know_of_audiences_sees_what_everyone_may(alice: ServerProcess) -> None:
    made = question("bob", QUESTION, now=system_clock())
    answer = alice.post("/mrp/request", signatures.sign_request(made, BOB)).json
    assert [each["attestation"]["claim"]["content"] for each in answer["results"]] == [FOR_ALL]
    assert answer["meta"]["trust_level_used"] == 1


def test_the_key_is_an_audience_at_any_address(alice: ServerProcess) -> None:
    key = cli(alice.data, "identity")["public_key"]
    made = question("bob", QUESTION, now=system_clock(), audience=key)
    answer = alice.post("/mrp/request", signatures.sign_request(made, BOB)).json
    assert {each["attestation"]["claim"]["content"] for each in answer["results"]} == {FOR_ALL, FOR_BOB}


def test_a_relay_through_a_folder_reads_nothing_but_what_everyone_may(
    alice: ServerProcess, mallory: Relay, tmp_path: Path
) -> None:
    expected = {}
    for audience, code in ((mallory.url, "declined"), (None, "success"), (public_of(new_private()), "declined")):
        made = question("bob", QUESTION, now=system_clock(), audience=audience)
        id = made["header"]["request_id"]
        (tmp_path / f"request-{id}.json").write_text(json.dumps(signatures.sign_request(made, BOB)))
        expected[id] = code
    args = command("mrp", "watch", str(tmp_path), "--once")
    subprocess.run(args, env=environment(alice.data), capture_output=True, timeout=SECONDS, check=True)
    for id, code in expected.items():
        answer = (tmp_path / f"response-{id}.json").read_text()
        assert json.loads(answer)["status"]["code"] == code
        assert FOR_BOB not in answer
