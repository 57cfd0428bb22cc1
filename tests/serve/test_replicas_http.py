"""A server beside stores that are not there: it says so before anyone writes, and waits for none of them."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

from server_process import ServerProcess, cli, run_server, store_url

from commonplace.wire.validate import check


def _until(server: ServerProcess, path: str, wanted: Any) -> Any:
    while not wanted(found := server.get(path).json):
        assert server.process.poll() is None
    return found


def test_one_that_is_down_is_told_before_anything_is_written(tmp_path: Path) -> None:
    down = "memorywire+http://127.0.0.1:9?name=other"
    with run_server(tmp_path, "--store", store_url(tmp_path / "own.db"), "--store", down) as server:
        health = _until(server, "/v0/health", lambda found: found["status"] != "ok")
        said = "the store other does not answer: 127.0.0.1:9 could not be reached"
        assert (health["status"], said in health["note"]) == ("degraded", True)
        assert said in server.get("/v0/status").json["note"]
        ready = _until(server, "/readyz", lambda found: found["checks"]["store"] != "ok")
        assert (ready["status"], ready["checks"]["store"]) == ("ready", "degraded")
        assert server.get("/readyz").status == 200, "it serves, from its own store"
        assert server.stop() == 0
    assert "".join(server.err).count(said) == 1


def test_one_that_never_answers_delays_neither_the_start_nor_the_end(tmp_path: Path) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        hanging = f"memorywire+http://127.0.0.1:{silent.getsockname()[1]}?name=other&timeout=600"
        with run_server(tmp_path, "--store", store_url(tmp_path / "own.db"), "--store", hanging) as server:
            asked, _ = silent.accept()
            with asked:
                assert asked.recv(1024).startswith(b"GET /v0/health")
                assert server.get("/v0/health").json["status"] == "ok", "nobody knows yet"
                assert server.stop() == 0


def test_an_import_and_a_run_of_a_job_name_the_store_that_did_not_take_them(tmp_path: Path) -> None:
    elsewhere, file = tmp_path / "elsewhere", tmp_path / "export.jsonl"
    cli(elsewhere, "remember", "perhaps tea", "--confidence", "0.1")
    cli(elsewhere, "export", "-o", str(file))
    (tmp_path / "commonplace.toml").write_text(
        '[lifecycle]\ninterval = 0\nexpire = ["confidence_below=0.5"]\n', "utf-8"
    )
    down = "memorywire+http://127.0.0.1:9?name=other"
    with run_server(tmp_path, "--store", store_url(tmp_path / "own.db"), "--store", down) as server:
        for path, sent, field in (("import", file.read_bytes(), "written"), ("lifecycle/expire/run", {}, "counts")):
            done = server.post(f"/v0/{path}", sent)
            assert done.status == 200, done.body
            check(f"memorywire/operations/{path.replace('/expire/', '.')}.response", done.json)
            assert any(done.json[field].values()), done.json
            (told,) = done.json["errors"]
            assert (told["store"], "it is kept and tried again" in told["error"]) == ("other", True)
        again = server.post("/v0/lifecycle/expire/run", {})
        assert "errors" not in again.json, "there was nothing to be told"
