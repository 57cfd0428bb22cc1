"""`commonplace ask` and `commonplace mrp`, as people and bots use them."""

from __future__ import annotations

import io
import json
import sys
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from commonplace.wire.keys import new_private, public_of
from commonplace.wire.record import system_clock
from commonplace.wire.times import iso
from commonplace.wire.validate import check

sys.path.append(str(Path(__file__).parents[1] / "serve"))
from server_process import ServerProcess, cli as command, run_server, token


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """Asks for tokens, and lets peers in without one."""
    data = tmp_path_factory.mktemp("server")
    for args in (
        ("Alice drinks green tea\x1b[2J in the morning", "--share-with", "*", "--tag", "drinks"),
        ("Alice keeps the good tea behind the flour",),
    ):
        command(data, "remember", *args, "--agent", "keeper")
    with run_server(data, COMMONPLACE_MRP_PUBLIC="true", COMMONPLACE_TOKEN_REQUIRED="true") as server:
        yield server


@pytest.fixture(autouse=True)
def no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COMMONPLACE_TOKEN", raising=False)


def test_an_answer_for_people(cli, server: ServerProcess) -> None:
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


def test_an_answer_for_programs(cli, server: ServerProcess) -> None:
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


def test_what_is_kept_is_found(cli, server: ServerProcess) -> None:
    ran = cli("ask", server.url, "tea", "--agent", "bob", "--verify", "--keep")
    assert "   kept as " in ran.out
    assert "   responder: accept" in ran.out
    (memory,) = cli("recall", "green tea", "--agent", "bob", "--json").json["results"]
    assert memory["id"] in ran.out
    assert memory["content"] == "Alice drinks green tea\x1b[2J in the morning"


def test_what_was_kept_before_can_be_shared_later(cli, server: ServerProcess) -> None:
    args = ("ask", server.url, "tea", "--agent", "bob", "--keep")
    id = cli(*args, "--json").json["kept"][0]["memory_id"]

    def shared() -> Any:
        return cli("get", id, "--agent", "bob", "--json").json.get("privacy_intent")

    assert not shared()
    assert f"   kept before as {id}\n" in cli(*args).out
    assert not shared()
    for names, said in ((("*",), "*"), (("carol", "dave"), "carol, dave")):
        ran = cli(*args, *(part for name in names for part in ("--share-with", name)))
        assert f"   kept before as {id}, now shared with {said}\n" in ran.out
        assert shared() == {"share_with": list(names)}
    version = cli("get", id, "--agent", "bob", "--json").json["version"]
    cli(*args, "--share-with", "carol", "--share-with", "dave")
    assert cli("get", id, "--agent", "bob", "--json").json["version"] == version, "what is so already is not written"


def test_ones_own_memory_is_not_shared_by_asking_for_it(cli, data: Path) -> None:
    id = cli("remember", "Alice hides the tea", "--agent", "bob", "--json").json["id"]
    with run_server(data) as own:
        ran = cli("ask", own.url, "tea", "--agent", "bob", "--keep", "--share-with", "*")
    assert (
        f"not kept: it is our own memory, {id}, and was not changed; to share it: `commonplace update {id}" in ran.out
    )
    assert not cli("get", id, "--agent", "bob", "--json").json.get("privacy_intent")
    assert ", which is our own\n" in ran.out
    assert ran.err.endswith(", signed with our own key\n"), "there is nobody to bind"


def test_the_key_bound_to_a_server_makes_what_it_signed_known(cli, server: ServerProcess) -> None:
    ran = cli("ask", server.url, "tea", "--agent", "bob")
    assert ", not known here" in ran.out
    assert "every server without `name` in [mrp] of its settings is called commonplace" in ran.err
    bind = ran.err.split("`")[1].split()
    assert bind[:4] == ["commonplace", "trust", "add", "commonplace"]
    pinned = cli("ask", server.url, "tea", "--agent", "bob", "--key-pin", bind[-1])
    assert ", known as commonplace's" in pinned.out
    added = cli(*bind[1:])
    assert added.code == 0
    assert "all others called so are refused" in added.err
    again = cli("ask", server.url, "tea", "--agent", "bob")
    assert ", known as commonplace's" in again.out
    assert "signed with its known key" in again.err
    (result,) = cli("ask", server.url, "tea", "--agent", "bob", "--json").json["examined"]["results"]
    assert (result["key_known"], result["known_as"]) == (True, "commonplace")
    # A key bound to the author's own name says more, and another one there makes it wrong.
    cli("trust", "add", "keeper", "--level", "1", "--key", bind[-1])
    assert ", known as keeper's" in cli("ask", server.url, "tea", "--agent", "bob").out
    other = ("trust", "add", "keeper", "--level", "1", "--key", public_of(new_private()))
    refused = cli(*other)
    assert (refused.code, refused.out) == (1, "")
    assert "keeper is bound to the key SHA256:" in refused.err
    assert cli(*other, "--replace").code == 0
    assert "   wrong: its signature does not match" in cli("ask", server.url, "tea", "--agent", "bob").out


def test_a_name_that_anyone_has_is_warned_of(cli) -> None:
    key = public_of(new_private())
    assert "every agent that was given no name" in cli("trust", "add", "default", "--level", "1", "--key", key).err
    assert cli("trust", "add", "Babel", "--level", "1", "--key", key).err == ""


def test_who_gives_tokens_is_said_where_one_is_asked_for(cli, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    command(theirs, "remember", "Alice drinks green tea")
    vouch = ("--subject", "keeper", "--domain", "tea", "--statement", "It knows tea")
    with run_server(theirs, COMMONPLACE_TOKEN_REQUIRED="true") as closed:
        token(theirs, "--role", "admin")
        for args in (("ask", closed.url, "tea"), ("mrp", "vouch", closed.url, *vouch)):
            ran = cli(*args)
            assert (ran.code, ran.out) == (1, "")
            assert (
                "the owner of that server must give you a token; pass it with --token or COMMONPLACE_TOKEN" in ran.err
            )
            assert "token create" not in ran.err
            refused = cli(*args, "--token", "cp_no_no")
            assert "refuses this token (this token is not known, has expired or was revoked)" in refused.err
            assert "ask the owner of that server for another" in refused.err
        assert cli("ask", closed.url, "tea", "--json").json["error"]["code"] == "unauthenticated"


def test_a_key_is_replaced_only_on_purpose(cli, monkeypatch: pytest.MonkeyPatch) -> None:
    old = cli("identity", "--json").json
    for args in ((), ("--json",)):
        ran = cli("identity", "rotate", *args)
        assert ran.code == 1
        assert "look with --dry-run first, then add --yes" in ran.out + ran.err
    tried = cli("identity", "rotate", "--dry-run")
    assert (tried.code, tried.out) == (0, "")
    assert old["fingerprint"] in tried.err
    assert "until they bind the new one" in tried.err
    assert cli("identity", "rotate", "--dry-run", "--json").json == {
        "dry_run": True, "would_retire": {"public_key": old["public_key"], "fingerprint": old["fingerprint"]},
    }  # fmt: skip

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("io.StringIO", Terminal)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    refused = cli("identity", "rotate", stdin="n\n")
    assert refused.code == 1
    assert "Replace it? [y/N]" in refused.err
    assert cli("identity", "--json").json == old
    assert cli("identity", "rotate", stdin="y\n").code == 0
    second = cli("identity", "--json").json
    assert [key["public_key"] for key in second["retired"]] == [old["public_key"]]
    ran = cli("identity", "rotate", "--yes")
    assert ran.out.strip() not in (old["public_key"], second["public_key"])
    assert "everyone who had bound the old one" in ran.err


def test_nothing_found_is_no_failure(cli, server: ServerProcess) -> None:
    ran = cli("ask", server.url, "--keyword", "zebra", "--keep")
    assert (ran.code, ran.out) == (0, "")
    assert ran.err == "answer of commonplace: no_match, no memory matches\n"


def test_with_a_token_it_hears_everything(cli, server: ServerProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    made = token(server.data, "--role", "reader")
    args = ("ask", server.url, "tea", "--responder-agent", "keeper", "--json")
    assert len(cli(*args).json["response"]["results"]) == 1
    assert len(cli(*args, "--token", made).json["response"]["results"]) == 2
    monkeypatch.setenv("COMMONPLACE_TOKEN", made)
    assert len(cli(*args).json["response"]["results"]) == 2
    ran = cli(*args[:-1], "--token", "cp_no_no")
    assert ran.code == 1
    assert "Traceback" not in ran.err


def test_an_answer_by_someone_else_is_neither_shown_nor_kept(cli, server: ServerProcess) -> None:
    other = public_of(new_private())
    ran = cli("ask", server.url, "tea", "--agent", "bob", "--keep", "--key-pin", other)
    assert (ran.code, ran.out) == (2, "")
    assert "does not answer as the holder of the expected key SHA256:" in ran.err
    assert "nothing was kept" in ran.err
    assert cli("list", "--agent", "bob", "--json").json["memories"] == []
    assert cli("ask", server.url, "tea", "--key-pin", other, "--json").json["error"]["code"] == "unavailable"


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        (("{url}",), 1, "say what you want to know"),
        (("nonsense", "tea"), 1, "is not a server's address"),
        (("http://127.0.0.1:99999", "tea"), 1, "is not a server's address"),
        (("http://127.0.0.1:1", "tea"), 2, "127.0.0.1:1 could not be reached: Connection refused; is a server"),
        (("{url}/elsewhere", "tea"), 1, "there is nothing at"),
        (("{url}", "tea", "--max", "0"), 1, "--max must be a whole number from 1"),
        (("{url}", "tea", "--trust", "9"), 1, "--trust must be"),
        (("{url}", "tea", "--after", "soon"), 1, "--after takes"),
        (("{url}", "tea", "--key-pin", "abc"), 1, "public_key must be base64"),
        (("{url}", "tea", "--timeout", "-1"), 1, "--timeout takes"),
    ],
)
def test_what_goes_wrong_is_one_sentence(
    cli, server: ServerProcess, args: tuple[str, ...], code: int, says: str
) -> None:
    ran = cli("ask", *(arg.format(url=server.url) for arg in args))
    assert (ran.code, ran.out) == (code, "")
    assert says in ran.err
    assert "Traceback" not in ran.err
    assert len(ran.err.splitlines()) == 1


def test_a_long_wait_is_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    from commonplace.cli.support import peers

    said = threading.Event()
    monkeypatch.setattr(peers, "PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setattr(peers, "note", lambda text: said.set())
    with peers.request_to("http://example.org", None):
        assert said.wait(10)


def test_a_vouch_that_nobody_trusts_is_refused_and_one_of_a_voucher_counts(
    cli, server: ServerProcess, data: Path
) -> None:
    args = ("mrp", "vouch", server.url, "--subject", "keeper", "--domain", "tea", "--statement", "It knows tea")
    ran = cli(*args, "--agent", "bob")
    assert ran.code == 1
    assert "only a vouch that counts is kept" in ran.err
    key = cli("identity", "--json").json["public_key"]
    command(server.data, "trust", "add", "bob", "--level", "2", "--key", key, "--voucher")
    assert "it counts there" in cli(*args, "--agent", "bob", "--level", "expert", "--expires", "30d").out
    reply = command(server.data, "mrp", "comment", "@keeper memory_request: green tea?", "--from", "carol")
    assert "   Vouch: bob" in reply["replies"][0]["text"].splitlines()
    assert "--level must be one of" in cli(*args, "--level", "godlike").err


# comments


COMMENT = "@keeper memory_request: what about green tea?\nmax:3"


@pytest.fixture
def shared_memories(cli) -> None:
    for args in (("Alice drinks green tea", "--share-with", "*", "--source", "diary.md"), ("The tea is hidden",)):
        assert cli("remember", *args, "--agent", "keeper").code == 0


def test_a_comment_is_answered(cli, shared_memories: None) -> None:
    for ran in (
        cli("mrp", "comment", COMMENT, "--from", "Babel"),
        cli("mrp", "comment", "-", "--from", "Babel", stdin=f"Hello!\n\n{COMMENT}\n\nBye."),
        cli("mrp", "comment", "--from", "Babel", "--agent", "keeper", stdin=COMMENT.replace("keeper", "KEEPER")),
    ):
        assert ran.code == 0
        assert ran.out.startswith("@Babel memory_response: Found 1 relevant memory.\n")
    first = cli("mrp", "comment", COMMENT, "--from", "Babel")
    assert first.out.splitlines()[0] == "@Babel memory_response: Found 1 relevant memory."
    assert first.out.splitlines()[2].endswith("] Alice drinks green tea")
    assert first.out.splitlines()[3] == "   Source: diary.md"


def test_the_author_of_a_comment_sees_what_is_shared_unless_trusted(cli, shared_memories: None) -> None:
    comment = "@keeper memory_request: keywords:tea"
    for more, count in (((), 1), (("--trust-author",), 2)):
        (reply,) = cli("mrp", "comment", comment, *more, "--json").json["replies"]
        check("mrp/request", reply["request"])
        check("mrp/response", reply["response"])
        assert len(reply["response"]["results"]) == count


def test_the_name_of_a_comments_author_opens_nothing(cli, shared_memories: None) -> None:
    assert cli("remember", "Tea for Babel alone", "--agent", "keeper", "--share-with", "Babel").code == 0
    (reply,) = cli("mrp", "comment", COMMENT, "--from", "Babel", "--json").json["replies"]
    (result,) = reply["response"]["results"]
    assert result["attestation"]["claim"]["content"] == "Alice drinks green tea"


def test_two_agents_whose_names_differ_in_letters_must_be_told_apart(cli, shared_memories: None) -> None:
    assert cli("remember", "Another keeper's tea", "--agent", "Keeper", "--share-with", "*").code == 0
    for name in ("keeper", "Keeper"):
        (reply,) = cli("mrp", "comment", COMMENT.replace("keeper", name), "--json").json["replies"]
        assert reply["response"]["responder"]["agent_id"] == name
    ran = cli("mrp", "comment", COMMENT.replace("keeper", "KEEPER"), "--from", "Babel")
    assert "Error: Keeper, keeper are different agents here: write the name in its own letters" in ran.out


@pytest.mark.parametrize(
    ("comment", "more", "says"),
    [
        ("Nothing asked", (), "no request in this comment"),
        ("@nobody memory_request: tea?", (), "no request to anyone here"),
        (COMMENT, ("--agent", "other"), "no request to anyone here"),
        ("```\n@keeper memory_request: tea?\n```", (), "no request in this comment"),
    ],
)
def test_what_is_not_for_us_gets_no_reply(cli, shared_memories: None, comment: str, more: Any, says: str) -> None:
    ran = cli("mrp", "comment", comment, *more)
    assert (ran.code, ran.out, ran.err) == (0, "", f"{says}\n")
    assert cli("mrp", "comment", comment, *more, "--json").json == {"replies": []}


def test_several_requests_get_several_replies_and_mistakes_are_told_to_the_author(cli, shared_memories: None) -> None:
    comment = f"@keeper memory_request: tea?\nmax:none\n\n@commonplace memory_request: tea?\n\n{COMMENT}"
    ran = cli("mrp", "comment", comment, "--from", "Babel")
    assert ran.code == 0
    heads = [text.split(": ", 1)[1] for text in ran.out.splitlines() if text.startswith("@Babel ")]
    assert heads[0].startswith("Error: max must be a whole number from 1 to 1000")
    assert heads[1:] == ["Found 1 relevant memory."] * 2


# folders


def test_a_folder_is_answered_once(cli, shared_memories: None, tmp_path: Path) -> None:
    folder = tmp_path / "exchange"
    folder.mkdir()
    id = str(uuid.uuid4())
    request = {
        "type": "memory_request", "version": "0.1", "header": {"request_id": id, "timestamp": iso(system_clock())},
        "requester": {"agent_id": "bob"}, "query": {"structured": {"keywords": ["tea"]}},
    }  # fmt: skip
    (folder / f"request-{id}.json").write_text(json.dumps(request), "utf-8")
    result = cli("mrp", "watch", str(folder), "--once", "--agent", "keeper", "--json").json
    assert (result["request"], result["status"], result["results"]) == (f"request-{id}.json", "success", 1)
    assert cli("mrp", "watch", str(folder), "--once", "--agent", "keeper").out == ""
    (folder / f"response-{id}.json").unlink()
    trusted = cli("mrp", "watch", str(folder), "--once", "--agent", "keeper", "--trust-folder")
    assert trusted.out == f"request-{id}.json → response-{id}.json  success, 2 memories\n"


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("/no-such-folder-here",), "there is no folder /no-such-folder-here; make it first"),
        ((__file__,), "is not a folder; give the folder"),
        ((".", "--interval", "0"), "--interval takes"),
        ((".", "--data", "/no-such-folder-here"), "there is no store in"),
    ],
)
def test_a_folder_that_cannot_be_watched_is_said(cli, args: tuple[str, ...], says: str) -> None:
    ran = cli("mrp", "watch", *args, "--once")
    assert (ran.code, ran.out) == (1, "")
    assert says in ran.err
