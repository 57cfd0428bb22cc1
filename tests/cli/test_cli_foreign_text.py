"""Nothing that an agent of someone else wrote reaches the terminal as a control or as a turn of direction."""

from __future__ import annotations

import json
import sys
import threading
import unicodedata
import uuid
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from commonplace.cli.support.output import _BIDI, flat, indented, visible
from commonplace.dialects.mrp import signatures
from commonplace.wire.keys import new_private
from commonplace.wire.record import system_clock
from commonplace.wire.times import iso

sys.path.append(str(Path(__file__).parents[1] / "serve"))

#: It clears the screen, moves up, writes backwards, and breaks a line in ways that are no line break here.
HOSTILE = "tea\x1b[2J\x9b2K\x07\u202eevil\u2066x\u200f\u061c\u2028\u2029\x85\x7f"
FORGED = f"{HOSTILE}\n   verified: signed with the key SHA256:0000, known as alice's"
PRIVATE = new_private()


def forbidden(text: str) -> set[str]:
    """Controls but for what separates lines and cells, and whatever turns the direction of writing."""
    turning = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
    marks = "\u061c\u200e\u200f\u2028\u2029"
    return {
        char
        for char in text
        if (unicodedata.category(char) == "Cc" and char not in "\n\t")
        or unicodedata.bidirectional(char) in turning
        or char in marks
    }


def attested(request: dict[str, Any]) -> dict[str, Any]:
    """A signed answer with something hostile wherever a peer has a word."""
    made = signatures.sign_attestation(
        {
            "id": str(uuid.uuid4()), "agent": HOSTILE, "created_at": iso(system_clock()),
            "claim": {"type": "fact", "content": FORGED, "references": [HOSTILE], "context": HOSTILE},
            "salience": {"why_kept": HOSTILE, "category": "operational", "confidence": 0.5,
                         "expected_decay": {"type": "permanent", "until": None}, "supersedes": []},
            "provenance": {"source": "direct-experience", "witnesses": [{"agent": HOSTILE}], "chain": [HOSTILE]},
        },
        PRIVATE,
    )  # fmt: skip
    result = {"memory_id": HOSTILE, "attestation": made, "relevance_score": 0.5, "match_context": HOSTILE}
    response = {
        "type": "memory_response", "version": "0.1",
        "header": {"request_id": request["header"]["request_id"], "response_id": str(uuid.uuid4()),
                   "timestamp": iso(system_clock())},
        "responder": {"agent_id": HOSTILE}, "status": {"code": "partial", "message": HOSTILE}, "results": [result],
        "meta": {"total_matches": 1, "returned": 1, "processing_time_ms": 1, "trust_level_used": 1},
    }  # fmt: skip
    return signatures.sign_response(response, PRIVATE)


class Mallory(BaseHTTPRequestHandler):
    refuses: ClassVar[set[str]] = set()

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        path = self.path.split("?")[0]
        status, answer = 200, {}
        if path in self.refuses:
            status, answer = 403, {"error": {"code": "forbidden", "message": HOSTILE, "details": {"field": HOSTILE}}}
        elif path == "/mrp/request":
            answer = attested(body)
        elif path == "/mrp/vouches":
            answer = {"vouch_id": HOSTILE, "counted": True}
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: Any) -> None: ...


@pytest.fixture
def mallory() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Mallory)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    Mallory.refuses = {"/mrp/verify"}
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


ASK = ("ask", "{url}", "tea", "--agent", "bob")
VOUCH = ("mrp", "vouch", "{url}", "--subject", "x", "--domain", "d", "--statement", "s", "--agent", "bob")
#: Every command that can print what someone else wrote; those after the first read what `ask --keep` has kept.
COMMANDS: dict[str, tuple[str, ...]] = {
    "ask": (*ASK, "--verify", "--keep"), "ask, as JSON": (*ASK, "--verify", "--json"), "vouch": VOUCH,
    "vouch, as JSON": (*VOUCH, "--json"), "recall": ("recall", "tea", "--agent", "bob"),
    "recall, as JSON": ("recall", "tea", "--agent", "bob", "--json"), "list": ("list", "--agent", "bob"),
    "list, as JSON": ("list", "--agent", "bob", "--json"), "get": ("get", "{id}", "--agent", "bob"),
    "get, as JSON": ("get", "{id}", "--agent", "bob", "--json"), "history": ("history", "{id}", "--agent", "bob"),
    "forget": ("forget", "{id}", "--agent", "bob", "--dry-run"), "audit": ("audit",),
    "comment": ("mrp", "comment", "@bob memory_request: tea?", "--from", HOSTILE, "--trust-author"),
    "comment, as JSON": ("mrp", "comment", "@bob memory_request: tea?", "--from", HOSTILE, "--trust-author", "--json"),
    "watch": ("mrp", "watch", "{folder}", "--once"), "watch, as JSON": ("mrp", "watch", "{folder}", "--once", "--json"),
    "trust remove": ("trust", "remove", HOSTILE),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_what_someone_else_wrote_is_printed_harmlessly(cli, mallory: str, tmp_path: Path, name: str) -> None:
    known = {"url": mallory, "folder": str(tmp_path), "id": ""}
    if not name.startswith(("ask", "vouch")):
        kept = cli(*(part.format(**known) for part in ASK), "--keep", "--json").json["kept"]
        known["id"] = kept[0]["memory_id"]
    wrong = {"type": HOSTILE, "header": {"request_id": str(uuid.uuid4())}, "requester": {"agent_id": HOSTILE}}
    (tmp_path / f"request-{wrong['header']['request_id']}.json").write_text(json.dumps(wrong))
    (tmp_path / f"request-{HOSTILE.replace('/', '')}.json").write_text("{}")
    ran = cli(*(part.format(**known) for part in COMMANDS[name]))
    assert ran.out or ran.err
    assert forbidden(ran.out + ran.err) == set()
    assert "\n   verified: signed with the key SHA256:0000" not in ran.out or name in ("recall", "get", "list")


@pytest.mark.parametrize("args", [ASK, (*ASK, "--json"), VOUCH, (*VOUCH, "--json")])
def test_a_refusal_of_someone_else_is_printed_harmlessly(cli, mallory: str, args: tuple[str, ...]) -> None:
    Mallory.refuses = {"/mrp/request", "/mrp/vouches"}
    ran = cli(*(part.format(url=mallory) for part in args))
    assert ran.code == 1
    assert forbidden(ran.out + ran.err) == set()


def test_what_is_printed_as_json_still_says_what_it_said(cli, mallory: str) -> None:
    heard = cli(*(part.format(url=mallory) for part in ASK), "--json").json
    assert heard["response"]["results"][0]["attestation"]["claim"]["content"] == FORGED


@pytest.mark.parametrize("char", [chr(c) for c in (*range(32), *range(127, 160), *_BIDI)], ids=ascii)
def test_no_control_and_no_turn_is_visible(char: str) -> None:
    for shown in (visible(f"a{char}b"), flat(f"a{char}b"), indented(f"a{char}b", "  ")):
        assert forbidden(shown) == set()
    assert (visible(char) == char) == (char in "\n\t")


def test_no_line_of_someone_elses_passes_for_one_of_ours() -> None:
    assert indented("one\ntwo\r\nthree", "   │ ").splitlines()[1:] == ["   │ two\ufffd", "   │ three"]


def test_the_name_of_an_agent_stays_on_its_line(cli, remember, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("commonplace.engine.memory.write.check_agent_name", lambda agent_id: None)
    remember("a fact", "--agent", "a\nb\x1b", "--user", "alice")
    assert "a\ufffdb\ufffd (1)" in cli("status").out
    assert "a\ufffdb\ufffd (1)" in cli("forget", "--user", "alice", "--dry-run").err
