"""`commonplace ask` and `commonplace mrp`, as people and bots use them."""

from __future__ import annotations

import json
import sys
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from commonplace.dialects.mrp import replies
from commonplace.wire.keys import new_private, public_of
from commonplace.wire.record import system_clock
from commonplace.wire.times import iso
from commonplace.wire.validate import check

sys.path.append(str(Path(__file__).parents[1] / "serve"))
from running import Running, running, token
from running import cli as command


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Asks for tokens, and lets peers in without one."""
    data = tmp_path_factory.mktemp("server")
    for args in (
        ("Alice drinks green tea\x1b[2J in the morning", "--share-with", "*", "--tag", "drinks"),
        ("Alice keeps the good tea behind the flour",),
    ):
        command(data, "remember", *args, "--agent", "keeper")
    with running(data, COMMONPLACE_MRP_PUBLIC="true", COMMONPLACE_TOKEN_REQUIRED="true") as server:
        yield server


@pytest.fixture(autouse=True)
def no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COMMONPLACE_TOKEN", raising=False)


def test_an_answer_for_people(cli, server: Running) -> None:
    ran = cli("ask", server.url, "what", "about", "tea?", "--responder-agent", "keeper", "--agent", "bob")
    assert ran.code == 0
    first, second, third = ran.out.splitlines()
    assert first.startswith("1. [")
    assert first.endswith("Alice drinks green tea�[2J in the morning")
    assert second.startswith("   by keeper, 20")
    assert third.startswith("   verified: signed with the key SHA256:")
    assert third.endswith(", not known here")
    assert "keeper: success, 1 memory, at trust level 1, signed with a key not known here; " in ran.err
    bind = ran.err.split("`")[1].split()
    assert cli(*bind[1:]).code == 0, "the command it proposes works"
    again = cli("ask", server.url, "tea?", "--responder-agent", "keeper")
    assert "signed with its known key" in again.err
    assert "known as keeper's" in again.out


def test_an_answer_for_programs(cli, server: Running) -> None:
    ran = cli(
        "ask", server.url, "tea", "--domain", "drinks", "--keyword", "green", "--max", "3", "--after", "1d",
        "--before", "2099-01-01", "--agent", "bob", "--verify", "--json",
    )  # fmt: skip
    document = ran.json
    check("mrp/request", document["request"])
    check("mrp/response", document["response"])
    assert document["request"]["requester"]["agent_id"] == "bob"
    assert document["request"]["response_preferences"] == {"sign_response": True, "max_results": 3}
    structured = document["request"]["query"]["structured"]
    assert (structured["domain"], structured["keywords"]) == ("drinks", ["green"])
    assert structured["time_range"]["before"] == "2099-01-01T23:59:59.999Z"
    assert document["examined"]["problem"] is None
    (verification,) = document["verifications"]
    check("mrp/verify-result", verification)


def test_what_is_kept_is_found(cli, server: Running) -> None:
    ran = cli("ask", server.url, "tea", "--agent", "bob", "--verify", "--keep")
    assert "   kept as " in ran.out
    assert "   responder: accept" in ran.out
    (memory,) = cli("recall", "green tea", "--agent", "bob", "--json").json["results"]
    assert memory["id"] in ran.out
    assert memory["content"] == "Alice drinks green tea\x1b[2J in the morning"


def test_nothing_found_is_no_failure(cli, server: Running) -> None:
    ran = cli("ask", server.url, "--keyword", "zebra", "--keep")
    assert (ran.code, ran.out) == (0, "")
    assert ran.err == "answer of commonplace: no_match, no memory matches\n"


def test_with_a_token_it_hears_everything(cli, server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    made = token(server.data, "--role", "reader")
    args = ("ask", server.url, "tea", "--responder-agent", "keeper", "--json")
    assert len(cli(*args).json["response"]["results"]) == 1
    assert len(cli(*args, "--token", made).json["response"]["results"]) == 2
    monkeypatch.setenv("COMMONPLACE_TOKEN", made)
    assert len(cli(*args).json["response"]["results"]) == 2
    ran = cli(*args[:-1], "--token", "cp_no_no")
    assert ran.code == 1
    assert "Traceback" not in ran.err


def test_an_answer_by_someone_else_is_neither_shown_nor_kept(cli, server: Running) -> None:
    other = public_of(new_private())
    ran = cli("ask", server.url, "tea", "--agent", "bob", "--keep", "--key-pin", other)
    assert (ran.code, ran.out) == (2, "")
    assert "is signed with another key" in ran.err
    assert "nothing was kept" in ran.err
    assert cli("list", "--agent", "bob", "--json").json["memories"] == []
    assert cli("ask", server.url, "tea", "--key-pin", other, "--json").json["error"]["code"] == "unavailable"


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        (("{url}",), 1, "say what you want to know"),
        (("nonsense", "tea"), 1, "is not a server's address"),
        (("http://127.0.0.1:99999", "tea"), 1, "is not a server's address"),
        (("http://127.0.0.1:1", "tea"), 2, "could not be reached"),
        (("{url}/elsewhere", "tea"), 1, "there is nothing at"),
        (("{url}", "tea", "--max", "0"), 1, "max_results must be a whole number from 1"),
        (("{url}", "tea", "--trust", "9"), 1, "min_trust_level must be"),
        (("{url}", "tea", "--after", "soon"), 1, "--after takes"),
        (("{url}", "tea", "--key-pin", "abc"), 1, "public_key must be base64"),
        (("{url}", "tea", "--timeout", "-1"), 1, "--timeout takes"),
    ],
)
def test_what_goes_wrong_is_one_sentence(cli, server: Running, args: tuple[str, ...], code: int, says: str) -> None:
    ran = cli("ask", *(arg.format(url=server.url) for arg in args))
    assert (ran.code, ran.out) == (code, "")
    assert says in ran.err
    assert "Traceback" not in ran.err
    assert len(ran.err.splitlines()) == 1


def test_a_long_wait_is_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    from commonplace.cli import ask

    said = threading.Event()
    monkeypatch.setattr(ask, "PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setattr(ask, "note", lambda text: said.set())
    with ask.waiting("http://example.org"):
        assert said.wait(10)


def test_a_vouch_that_nobody_trusts_is_refused_and_one_of_a_voucher_counts(cli, server: Running, data: Path) -> None:
    args = ("mrp", "vouch", server.url, "--subject", "keeper", "--domain", "tea", "--statement", "It knows tea")
    ran = cli(*args, "--agent", "bob")
    assert ran.code == 1
    assert "only a vouch that counts is kept" in ran.err
    key = cli("identity", "--json").json["public_key"]
    command(server.data, "trust", "add", "bob", "--level", "2", "--key", key, "--voucher")
    assert "it counts there" in cli(*args, "--agent", "bob", "--level", "expert", "--expires", "30d").out
    reply = command(server.data, "mrp", "comment", "@keeper memory_request: green tea?", "--from", "carol")
    assert "   Vouch: bob" in reply["replies"][0]["text"].splitlines()
    assert "claim.level must be one of" in cli(*args, "--level", "godlike").err


# comments


COMMENT = "@keeper memory_request: what about green tea?\nmax:3"


@pytest.fixture
def keeper(cli) -> None:
    for args in (("Alice drinks green tea", "--share-with", "*", "--source", "diary.md"), ("The tea is hidden",)):
        assert cli("remember", *args, "--agent", "keeper").code == 0


def test_a_comment_is_answered(cli, keeper: None) -> None:
    for ran in (
        cli("mrp", "comment", COMMENT, "--from", "Babel"),
        cli("mrp", "comment", "-", "--from", "Babel", stdin=f"Hello!\n\n{COMMENT}\n\nBye."),
        cli("mrp", "comment", "--from", "Babel", "--agent", "keeper", stdin=COMMENT.replace("keeper", "KEEPER")),
    ):
        assert ran.code == 0
        reply = replies.parse(ran.out)
        assert reply is not None
        assert (reply.to, reply.code) == ("Babel", "success")
    first = cli("mrp", "comment", COMMENT, "--from", "Babel")
    assert first.out.splitlines()[0] == "@Babel memory_response: Found 1 relevant memory."
    assert first.out.splitlines()[2].endswith("] Alice drinks green tea")
    assert first.out.splitlines()[3] == "   Source: diary.md"


def test_the_author_of_a_comment_sees_what_is_shared_unless_trusted(cli, keeper: None) -> None:
    comment = "@keeper memory_request: keywords:tea"
    for more, count in (((), 1), (("--trust-author",), 2)):
        (reply,) = cli("mrp", "comment", comment, *more, "--json").json["replies"]
        check("mrp/request", reply["request"])
        check("mrp/response", reply["response"])
        assert len(reply["response"]["results"]) == count


@pytest.mark.parametrize(
    ("comment", "more", "says"),
    [
        ("Nothing asked", (), "no request in this comment"),
        ("@nobody memory_request: tea?", (), "no request to anyone here"),
        (COMMENT, ("--agent", "other"), "no request to anyone here"),
        ("```\n@keeper memory_request: tea?\n```", (), "no request in this comment"),
    ],
)
def test_what_is_not_for_us_gets_no_reply(cli, keeper: None, comment: str, more: Any, says: str) -> None:
    ran = cli("mrp", "comment", comment, *more)
    assert (ran.code, ran.out, ran.err) == (0, "", f"{says}\n")
    assert cli("mrp", "comment", comment, *more, "--json").json == {"replies": []}


def test_several_requests_get_several_replies_and_mistakes_are_told_to_the_author(cli, keeper: None) -> None:
    comment = f"@keeper memory_request: tea?\nmax:none\n\n@commonplace memory_request: tea?\n\n{COMMENT}"
    ran = cli("mrp", "comment", comment, "--from", "Babel")
    assert ran.code == 0
    heads = [text.split(": ", 1)[1] for text in ran.out.splitlines() if text.startswith("@Babel ")]
    assert heads[0].startswith("Error: max must be a whole number from 1 to 1000")
    assert heads[1:] == ["Found 1 relevant memory."] * 2


# folders


def test_a_folder_is_answered_once(cli, keeper: None, tmp_path: Path) -> None:
    folder = tmp_path / "exchange"
    folder.mkdir()
    id = str(uuid.uuid4())
    request = {
        "type": "memory_request", "version": "0.1", "header": {"request_id": id, "timestamp": iso(system_clock())},
        "requester": {"agent_id": "bob"}, "query": {"structured": {"keywords": ["tea"]}},
    }  # fmt: skip
    (folder / f"request-{id}.json").write_text(json.dumps(request), "utf-8")
    told = cli("mrp", "watch", str(folder), "--once", "--agent", "keeper", "--json").json
    assert (told["request"], told["status"], told["results"]) == (f"request-{id}.json", "success", 1)
    assert cli("mrp", "watch", str(folder), "--once", "--agent", "keeper").out == ""
    (folder / f"response-{id}.json").unlink()
    trusted = cli("mrp", "watch", str(folder), "--once", "--agent", "keeper", "--trust-folder")
    assert trusted.out == f"request-{id}.json → response-{id}.json  success, 2 memories\n"


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("/nonexistent",), "is not a folder; make it first"),
        ((".", "--interval", "0"), "--interval takes"),
        ((".", "--data", "/nonexistent"), "there is no store in"),
    ],
)
def test_a_folder_that_cannot_be_watched_is_said(cli, args: tuple[str, ...], says: str) -> None:
    ran = cli("mrp", "watch", *args, "--once")
    assert (ran.code, ran.out) == (1, "")
    assert says in ran.err
