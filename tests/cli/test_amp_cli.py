"""The `amp` command on the local store: the document's own session, and what people get wrong."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from commonplace.cli import main as commonplace
from commonplace.cli.amp import main
from commonplace.cli.amp.client import route

LESSON = (
    "store", "--type", "lesson", "--title", "PostgreSQL connection pooling",
    "--content", "Always use connection pooling in production. PgBouncer recommended.",
    "--tags", "postgresql,devops,performance",
)  # fmt: skip


AmpCli = Callable[..., Any]


@pytest.fixture
def amp(program: Callable[..., AmpCli], monkeypatch: pytest.MonkeyPatch) -> AmpCli:
    monkeypatch.delenv("COMMONPLACE_TOKEN", raising=False)
    return program(main)


def test_appendix_a_ends_as_it_shows(amp: AmpCli) -> None:
    stored = amp(*LESSON)
    assert (stored.code, stored.err) == (0, "")
    assert re.fullmatch(r"stored lesson_[0-9a-f-]{36}\n", stored.out)
    for title in ("Kubernetes probes", "CSS grid gaps", "Rust lifetimes"):
        amp("store", "--type", "lesson", "--title", title, "--content", f"What to know about {title.lower()}.")
    found = amp("search", "database connection issues production", "--type", "lesson")
    assert found.code == 0
    assert re.match(r'"PostgreSQL connection pooling" \(score: [01]\.\d\d\)\n', found.out)
    checkpoint = amp(
        "store", "--type", "checkpoint", "--agent", "radarr", "--working-on", "Debugging auth flow",
        "--state", '{"blockers": ["Missing API key for OAuth provider"]}',
    )  # fmt: skip
    assert re.fullmatch(r"stored checkpoint_[0-9a-f-]{36}\n", checkpoint.out)
    listed = amp("list", "--type", "checkpoint", "--agent", "radarr", "--limit", "1")
    id, _, kind, agent, task = listed.out.rstrip("\n").split("\t")
    assert (checkpoint.out, kind, agent, task) == (f"stored {id}\n", "checkpoint", "radarr", "Debugging auth flow")


@pytest.mark.slow
def test_appendix_a_typed_into_a_shell_with_the_default_model(tmp_path: Path) -> None:
    command = f"{sys.executable} -m commonplace.cli.amp"
    script = f"""
{command} store --type lesson \\
  --title "PostgreSQL connection pooling" \\
  --content "Always use connection pooling in production. PgBouncer recommended." \\
  --tags "postgresql,devops,performance"
{command} store --type lesson --title "React keys" --content "Give list items stable keys." --tags "react"
{command} search "database connection issues production" --type lesson
{command} store --type checkpoint \\
  --agent radarr \\
  --working-on "Debugging auth flow" \\
  --state '{{"blockers": ["Missing API key for OAuth provider"]}}'
{command} list --type checkpoint --agent radarr --limit 1
"""
    environment = {**os.environ, "COMMONPLACE_DATA": str(tmp_path / "data")}
    ran = subprocess.run(["sh", "-ec", script], env=environment, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    lines = ran.stdout.splitlines()
    assert re.fullmatch(r'"PostgreSQL connection pooling" \(score: [01]\.\d\d\)', lines[2])
    assert "Debugging auth flow" in lines[-1]


@pytest.mark.slow
def test_search_finds_by_meaning_what_shares_no_word_with_the_question(
    amp: AmpCli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMMONPLACE_EMBEDDER", "encoder")
    texts = ("The cat sleeps on the sofa.", "Invoices are due within thirty days.", "Berlin has many lakes.")
    for text in texts:
        amp("store", "--type", "note", "--content", text)
    for question, answer in (("where do pets nap", texts[0]), ("when must customers pay", texts[1])):
        found = amp("search", question, "--min-score", "0", "--json").json["results"]
        assert found[0]["record"]["content"] == answer


def test_every_verb_and_flag_of_the_document_is_there(amp: AmpCli) -> None:
    top = amp("--help")
    for verb in ("store", "search", "get", "delete", "list", "status", "agent-status"):
        assert re.search(rf"^  {verb} ", top.out, re.MULTILINE)
        shown = amp(verb, "--help")
        assert shown.code == 0
        assert "Example:" in shown.out
        assert {"--json", "--url", "--data"} <= set(re.findall(r"--[a-z-]+", shown.out))
    flags = set(re.findall(r"--[a-z-]+", amp("store", "--help").out))
    assert {
        "--type", "--title", "--content", "--tags", "--agent", "--working-on", "--state", "--file-path", "--language",
        "--project", "--severity", "--session-id", "--start-line", "--end-line", "--repo", "--id",
    } <= flags  # fmt: skip
    assert amp().out == top.out
    assert amp("--version").out.startswith("amp ")


def test_a_record_is_stored_replaced_shown_and_deleted(amp: AmpCli) -> None:
    assert amp(*LESSON, "--id", "pooling", "--project", "atlas", "--severity", "critical").out == "stored pooling\n"
    assert amp(*LESSON, "--id", "pooling", "--field", "stars=5", "--field", "note=plain").out == "replaced pooling\n"
    shown = amp("get", "pooling", "--json").json["record"]
    assert (shown["stars"], shown["note"], shown["tags"]) == (5, "plain", ["postgresql", "devops", "performance"])
    assert "severity" not in shown
    assert "project" not in shown
    plain = amp("get", "pooling").out
    assert plain.startswith("Always use connection pooling")
    assert re.search(r"^created_at +\d{4}-\d\d-\d\dT", plain, re.MULTILINE)
    assert amp("delete", "pooling").out == "deleted pooling\n"
    gone = amp("delete", "pooling")
    assert (gone.code, gone.out, gone.err) == (1, "", "amp: no record pooling\n")
    assert amp("delete", "pooling", "--json").json == {"success": True, "deleted": False}
    missing = amp("get", "pooling")
    assert (missing.code, missing.out, missing.err) == (1, "", "amp: no record pooling\n")


def test_content_comes_from_a_file_or_stdin_and_a_record_as_json(amp: AmpCli, tmp_path: Path) -> None:
    source = tmp_path / "app.py"
    source.write_text("def main():\n    return 0\n")
    flags = (
        "--file-path",
        "src/app.py",
        "--language",
        "python",
        "--start-line",
        "1",
        "--end-line",
        "2",
        "--repo",
        "atlas",
    )
    amp("store", "--type", "snippet", "--content-file", str(source), *flags, "--id", "a")
    record = amp("get", "a", "--json").json["record"]
    assert record["content"] == "def main():\n    return 0"
    assert (record["file_path"], record["language"], record["start_line"], record["repo"]) == (
        "src/app.py", "python", 1, "atlas")  # fmt: skip
    amp("store", "--type", "note", "--content", "-", "--id", "b", stdin="from a pipe\n")
    assert amp("get", "b", "--json").json["record"]["content"] == "from a pipe"
    amp(
        "store",
        "--record",
        "-",
        "--id",
        "c",
        "--tags",
        "x",
        stdin=json.dumps({"type": "note", "content": "whole", "n": 1}),
    )
    record = amp("get", "c", "--json").json["record"]
    assert (record["type"], record["content"], record["n"], record["tags"]) == ("note", "whole", 1, ["x"])
    assert '"src/app.py:1"' in amp("search", "def main", "--type", "snippet").out


def test_filters_reach_search_and_list(amp: AmpCli) -> None:
    amp(*LESSON, "--project", "atlas")
    amp("store", "--title", "Vacuum", "--content", "PostgreSQL vacuum", "--tags", "postgresql", "--agent", "bob")
    for verb in (("search", "postgresql"), ("list",)):
        for flags, count in (
            ((), 2), (("--tags", "postgresql"), 2), (("--tags", "postgresql,devops"), 1),
            (("--tags", "postgresql", "--tags", "devops"), 1), (("--project", "atlas"), 1), (("--type", "note"), 0),
        ):  # fmt: skip
            assert amp(*verb, *flags, "--json").json["total"] == count, (verb, flags)
    assert amp("list", "--agent", "bob", "--json").json["total"] == 1
    assert amp("search", "postgresql", "--agent", "bob", "--json").json["total"] == 2
    page = amp("list", "--limit", "1", "--offset", "1", "--order", "asc", "--json").json
    assert (page["records"][0]["title"], page["has_more"]) == ("Vacuum", False)
    assert "there is more: 2 in all; add --offset 1" in amp("list", "--limit", "1").err
    assert amp("search", "postgresql", "--min-score", "1.0", "--json").json["total"] <= 2
    assert amp("search", "zebra", "--type", "nothing").err.endswith("note: nothing found\n")


def test_status_and_agent_status(amp: AmpCli) -> None:
    assert amp("agent-status", "radarr", "--json").json["status"] == "idle"
    amp(
        "store",
        "--type",
        "checkpoint",
        "--agent",
        "radarr",
        "--working-on",
        "Auth",
        "--state",
        '{"flags": ["BLOCKED"]}',
    )
    assert amp("agent-status", "--agent", "radarr", "--json").json["status"] == "blocked"
    shown = amp("agent-status", "radarr").out
    assert re.search(r"^status +blocked$", shown, re.MULTILINE)
    assert re.search(r"^current_task +Auth$", shown, re.MULTILINE)
    status = amp("status", "--json").json
    assert (status["protocol"], status["stats"]["checkpoints"]) == ("AMP/0.1", 1)
    assert re.search(r"^total_records +1$", amp("status").out, re.MULTILINE)


def test_a_record_that_waits_for_approval_says_so(amp: AmpCli) -> None:
    assert "waits for approval" in amp(*LESSON, "--approval").out
    assert amp("list", "--json").json["total"] == 0


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("store",), "record.title is required"),
        (("store", "--type", "checkpoint", "--working-on", "x"), "record.agent is required"),
        (("store", "--title", "x", "--content", "y", "--severity", "loud"), "--severity must be one of"),
        (
            ("store", "--type", "checkpoint", "--agent", "a", "--working-on", "x", "--state", "{"),
            "--state is not valid JSON",
        ),
        (("store", "--field", "oops"), "--field takes KEY=VALUE"),
        (("store", "--content", "x", "--content-file", "y"), "not both"),
        (("store", "--content-file", "/nonexistent"), "cannot read"),
        (("store", "--record", "[]"), "--record must be a JSON object"),
        (("search",), "Missing argument"),
        (("search", "x", "--limit", "0"), "limit must be a whole number from 1 to 1000"),
        (("search", "x", "--min-score", "7"), "--min-score must be a number from 0 to 1"),
        (("list", "--order", "up"), "order must be one of desc, asc"),
        (("get", "nope"), "no record nope"),
        (("agent-status",), "say which agent"),
        (("forget",), "No such command"),
        (
            ("status", "--url", "nonsense"),
            "'nonsense' is not a server's address; write for example http://127.0.0.1:8420",
        ),
        (("status", "--url", "http://127.0.0.1:9", "--token", "a b"), "the token holds a character that no token has"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_1(amp: AmpCli, args: tuple[str, ...], says: str) -> None:
    ran = amp(*args)
    assert (ran.code, ran.out) == (1, "")
    assert says in ran.err
    assert ran.err.startswith("amp: ")
    assert "Traceback" not in ran.err
    if "--json" not in args:
        document = amp(*args, "--json")
        assert document.code == 1
        assert document.json["success"] is False
        assert set(document.json["error"]) == {"code", "message"}


def test_a_failing_backend_is_exit_2(amp: AmpCli, tmp_path: Path) -> None:
    ran = amp("status", "--url", "http://127.0.0.1:9")
    assert (ran.code, ran.out) == (2, "")
    assert "127.0.0.1:9 could not be reached: Connection refused" in ran.err
    assert "`commonplace serve --port 9` starts one" in ran.err
    (tmp_path / "data").mkdir(exist_ok=True)
    (tmp_path / "data" / "commonplace.db").write_bytes(b"not a database at all" * 100)
    ran = amp("status")
    assert ran.code == 2
    assert "Traceback" not in ran.err


def test_no_verb_speaks_to_a_server_unless_told_which(amp: AmpCli, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[Any] = []

    def refuse(_: Any, address: Any) -> None:
        tried.append(address)
        raise ConnectionRefusedError

    monkeypatch.setattr("socket.socket.connect", refuse)
    monkeypatch.setenv("COMMONPLACE_TOKEN", "for-when-a-server-is-named")
    for verb in (
        (*LESSON, "--id", "pooling"), ("search", "pooling"), ("get", "pooling"), ("list",), ("status",),
        ("agent-status", "radarr"), ("delete", "pooling"),
    ):  # fmt: skip
        assert amp(*verb).code == 0, verb
    assert tried == []
    assert amp("status", "--url", "http://127.0.0.1:9").code == 2
    assert tried == [("127.0.0.1", 9)]


def test_what_is_printed_cannot_move_the_cursor(amp: AmpCli) -> None:
    amp("store", "--title", "evil\x1b[2J\ntitle", "--content", "x\x1b]0;owned\x07")
    for verb in (("search", "evil"), ("list",)):
        assert "\x1b" not in amp(*verb).out


def test_both_commands_share_one_store(amp: AmpCli, capsys: pytest.CaptureFixture[str]) -> None:
    amp(*LESSON, "--agent", "alice")
    capsys.readouterr()
    assert commonplace(["recall", "connection pooling", "--agent", "alice", "--json"]) == 0
    (hit,) = json.loads(capsys.readouterr().out)["results"]
    assert hit["metadata"]["title"] == "PostgreSQL connection pooling"
    commonplace(["remember", "The door code is 4711", "--agent", "alice", "--tag", "doors"])
    (found,) = amp("search", "door code", "--tags", "doors", "--json").json["results"]
    assert found["record"]["content"] == "The door code is 4711"


@pytest.mark.parametrize(
    ("operation", "request_", "method", "path"),
    [
        ("store", {"record": {}}, "POST", "/amp/store"),
        ("search", {"query": "x"}, "POST", "/amp/search"),
        ("get", {"id": "a/b c", "agent": "x&y"}, "GET", "/amp/records/a%2Fb%20c?agent=x%26y"),
        ("delete", {"id": "x"}, "DELETE", "/amp/records/x"),
        ("list", {"tags": ["a", "b"], "limit": 3}, "GET", "/amp/records?tags=a%2Cb&limit=3"),
        ("status", {}, "GET", "/amp/status"),
        ("agent_status", {"agent": "a b"}, "GET", "/amp/agents/a%20b/status"),
    ],
)
def test_each_operation_has_its_route(operation: str, request_: dict[str, Any], method: str, path: str) -> None:
    assert route(operation, request_)[:2] == (method, path)


def test_a_redirect_is_a_failure_also_with_a_document_that_reads_as_success(amp: AmpCli) -> None:
    class Elsewhere(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(302)
            self.send_header("Location", "https://alice:s3cret@memory.example/amp/store?key=s3cret")
            self.end_headers()
            self.wfile.write(b'{"success": true, "id": "x", "namespace": "default"}')

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        ran = amp(*LESSON, "--url", f"http://127.0.0.1:{server.server_address[1]}")
        server.shutdown()
    assert (ran.code, ran.out) == (2, "")
    assert "answered 302, a redirect to https://memory.example, which is not followed" in ran.err
    assert "s3cret" not in ran.err
