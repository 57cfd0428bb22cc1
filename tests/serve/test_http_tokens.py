"""Tokens: made by the command, noticed by a running server, refused alike whatever is wrong with them."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import TokenServer
from server_process import PROTOCOLS, SECONDS, ServerProcess, cli, command, environment, run_server, token
from tampering import traces

from commonplace.config import load as configure
from commonplace.engine_factory import open_engine
from commonplace.serve import auth
from commonplace.testing.subject import START, FakeClock, Subject
from commonplace.wire.errors import Unauthenticated
from commonplace.wire.record import Principal


def eventually(server: ServerProcess, secret: str, status: int) -> None:
    """Until the server answers this token so; a server that never does is stopped by the limit on every test."""
    while server.get("/v0/health", token=secret).status != status:
        pass


def test_a_revoked_token_is_refused_once_the_view_of_tokens_is_too_old(
    over: tuple[Subject, Callable[[Any], Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject, run = over
    now, reads = 1000.0, 0
    monkeypatch.setattr(auth.time, "monotonic", lambda: now)
    read_all = subject.engine.tokens.all

    async def read() -> Any:
        nonlocal reads
        reads += 1
        return await read_all()

    monkeypatch.setattr(subject.engine.tokens, "all", read)
    authenticator = auth.Authenticator(subject.engine, configure(data=tmp_path), loopback=True)
    operator = Principal("operator", role="admin")
    made, secret = run(subject.engine.tokens.create(operator, role="reader"))

    def admit(presented: str) -> Principal:
        who: Principal = run(authenticator.admit(f"Bearer {presented}"))[0]
        return who

    assert admit(secret).role == "reader"
    run(subject.engine.tokens.revoke(operator, made.id))
    now += auth.REFRESH_SECONDS
    assert admit(secret).role == "reader"
    assert reads == 1, "the view was young enough"
    now += 0.001
    with pytest.raises(Unauthenticated):
        admit(secret)
    seen = reads
    for _ in range(100):
        with pytest.raises(Unauthenticated):
            admit("cp_ffffffffffff_x")
    assert reads == seen, "guessing must cost the store nothing"


def test_a_token_made_since_the_last_look_is_accepted_and_guesses_wait_for_one_look_together(
    over: tuple[Subject, Callable[[Any], Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject, run = over
    now, reads, slept = 1000.0, 0, []
    monkeypatch.setattr(auth.time, "monotonic", lambda: now)
    read_all = subject.engine.tokens.all
    wake = asyncio.Event()

    async def read() -> Any:
        nonlocal reads
        reads += 1
        return await read_all()

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        await wake.wait()

    monkeypatch.setattr(subject.engine.tokens, "all", read)
    authenticator = auth.Authenticator(subject.engine, configure(data=tmp_path), loopback=True)
    operator = Principal("operator", role="admin")

    async def scenario() -> list[Any]:
        nonlocal now
        _, first = await subject.engine.tokens.create(operator, role="writer")
        assert (await authenticator.admit(f"Bearer {first}"))[0].role == "writer"
        _, secret = await subject.engine.tokens.create(operator, role="reader")
        now += 0.01
        presented = [secret, *(f"cp_{guess:012x}_x" for guess in range(100))]
        admitted = [asyncio.create_task(authenticator.admit(f"Bearer {each}")) for each in presented]
        monkeypatch.setattr(auth.asyncio, "sleep", sleep)
        while len(slept) < len(presented):  # until each waits
            await turn(0)
        assert (await authenticator.admit(f"Bearer {first}"))[0].role == "writer", "who is known does not wait"
        assert reads == 1
        now += max(slept)
        wake.set()
        return await asyncio.gather(*admitted, return_exceptions=True)

    turn = asyncio.sleep
    accepted, *refused = run(scenario())
    assert accepted[0].role == "reader"
    assert {type(each) for each in refused} == {Unauthenticated}
    assert reads == 2
    assert slept == pytest.approx([auth._AGAIN_SECONDS - 0.01] * 101)


def test_a_running_server_notices_every_change(tmp_path: Path) -> None:
    with run_server(tmp_path) as server:
        assert server.get("/v0/health").status == 200
        made = cli(tmp_path, "token", "create", "--role", "admin", "--agents", "a,b-*", "--expires", "1d")
        assert set(made) == {"id", "token", "tenant", "role", "agents", "expires_at"}
        assert (made["tenant"], made["role"], made["agents"]) == ("local", "admin", ["a", "b-*"])
        assert server.get("/v0/health", token=made["token"]).status == 200
        eventually(server, "", 401)
        rotated = cli(tmp_path, "token", "rotate", made["id"])
        assert rotated["id"] == made["id"]
        assert server.get("/v0/health", token=rotated["token"]).status == 200
        eventually(server, made["token"], 401)
        cli(tmp_path, "token", "revoke", made["id"])
        eventually(server, rotated["token"], 401)
        assert server.get("/v0/health").status == 401, "revoking the last token must not open the server"
        (kept,) = cli(tmp_path, "token", "list")["tokens"]
        assert kept["status"] == "revoked"
        assert not {"hash", "token"} & set(kept)
        cli(tmp_path, "token", "remove", made["id"])
        eventually(server, "", 200)


def test_the_secret_is_nowhere_on_disk(tmp_path: Path) -> None:
    secret = token(tmp_path)
    _, public, private = secret.split("_", 2)
    assert traces(tmp_path, public)
    assert traces(tmp_path, private) == []


@pytest.mark.parametrize("authorization", [
    None, "", "Bearer", "Bearer ", "Bearer cp", "Bearer cp__", "Bearer cp_ffffffffffff_x", "Bearer \u00e9",
    "Basic YTpi", "Bearer " + "x" * 4000,
])  # fmt: skip
def test_bad_tokens_are_all_refused(guarded: TokenServer, authorization: str | None) -> None:
    headers = {} if authorization is None else {"Authorization": authorization}
    answer = guarded.server.get("/v0/health", headers=headers)
    assert (answer.status, answer.code) == (401, "unauthenticated")
    assert answer.headers["www-authenticate"].startswith("Bearer")


def test_a_known_id_with_a_wrong_secret_sounds_like_an_unknown_one(guarded: TokenServer) -> None:
    prefix, id, secret = guarded.tokens["acme"].split("_", 2)
    near = guarded.server.get("/v0/health", token=f"{prefix}_{id}_{secret[:-2]}zz")
    far = guarded.server.get("/v0/health", token=f"{prefix}_000000000000_{secret}")
    assert (near.status, near.body) == (far.status, far.body)


@pytest.mark.parametrize("route", [b for p in PROTOCOLS for b in p.routes if b.role], ids=lambda b: b.operation)
def test_every_route_asks_for_a_token(guarded: TokenServer, route: object) -> None:
    path = route.path.replace("{id:path}", "x").replace("{id}", "x").replace("{agent:path}", "x")  # type: ignore[attr-defined]
    assert guarded.server.call(route.method, path).status == 401  # type: ignore[attr-defined]


def test_what_stays_open_tells_nothing(guarded: TokenServer) -> None:
    assert guarded.server.get("/healthz").json == {"status": "ok"}
    assert set(guarded.server.get("/readyz").json) == {"status", "checks"}
    assert guarded.server.get("/metrics").status == 401
    assert guarded.server.get("/metrics", token=guarded.tokens["acme"]).status == 403
    page = guarded.server.get("/metrics", token=guarded.tokens["operator"])
    assert page.status == 200
    assert b"acme" not in page.body


def test_an_expired_token_is_refused(over: tuple[Subject, Callable[[Any], Any]], tmp_path: Path) -> None:
    subject, run = over
    end = subject.clock() + 10_000
    _, secret = run(subject.engine.tokens.create(Principal("operator", role="admin"), role="reader", expires_at=end))
    authenticator = auth.Authenticator(subject.engine, configure(data=tmp_path), loopback=True)
    subject.clock.now = end - 1
    assert run(authenticator.admit(f"Bearer {secret}"))[0].role == "reader"
    subject.clock.now = end
    with pytest.raises(Unauthenticated):
        run(authenticator.admit(f"Bearer {secret}"))


def test_a_server_refuses_who_has_no_token_or_one_from_the_past(tmp_path: Path) -> None:
    async def create_long_ago() -> str:
        engine = await open_engine(configure(data=tmp_path, embedder="none"), clock=FakeClock())
        _, secret = await engine.tokens.create(Principal("operator", role="admin"), expires_at=START + 10_000)
        await engine.close()
        return secret

    with run_server(tmp_path, "--token-required") as server:
        assert server.get("/v0/health").status == 401, "required even while there are none"
    past = asyncio.run(create_long_ago())
    with run_server(tmp_path, "--token-required") as server:
        assert server.get("/v0/health", token=past).status == 401
        assert server.get("/v0/health", token=token(tmp_path)).status == 200


@pytest.mark.parametrize(("role", "allowed"), [("reader", {"recall"}), ("writer", {"recall", "remember"})])
def test_roles_are_floors(guarded: TokenServer, role: str, allowed: set[str]) -> None:
    body = {"agent_id": "roles", "type": "semantic", "content": "x"}
    calls = {
        "recall": ("POST", "/v0/recall", {"agent_id": "roles", "query": "x"}),
        "remember": ("POST", "/v0/remember", body),
        "decide": ("POST", "/v0/reviews/none", {"approved": True}),
        "audit": ("GET", "/v0/audit", None),
    }
    for name, (method, path, sent) in calls.items():
        status = guarded.server.call(method, path, sent, token=guarded.tokens[f"acme/{role}"]).status
        assert (status == 200) == (name in allowed), name
        assert status in (200, 403)


def test_the_reviewer_is_whoever_the_token_says(guarded: TokenServer) -> None:
    server, who = guarded.server, guarded.tokens["acme/ada"]
    body = {"agent_id": "ada", "type": "semantic", "content": "whose review?", "approval_required": True}
    kept = server.post("/v0/remember", body, token=who).json
    (review,) = [r for r in server.get("/v0/reviews", token=who).json["reviews"] if r["memory_id"] == kept["id"]]
    decided = server.post(f"/v0/reviews/{review['id']}", {"approved": False, "reviewer": "someone else"}, token=who)
    assert decided.json["reviewer"] == "acme-ada"


def refusal(data: Path, *args: str) -> tuple[int, str]:
    done = subprocess.run(
        command("serve", "--port", "0", *args), env=environment(data), capture_output=True, text=True,
        timeout=SECONDS, check=False,
    )  # fmt: skip
    return done.returncode, done.stderr


def test_other_machines_are_not_served_without_tokens(tmp_path: Path) -> None:
    code, said = refusal(tmp_path, "--host", "0.0.0.0")
    assert code == 1
    assert "commonplace token create" in said
    assert "Traceback" not in said
    made = cli(tmp_path, "token", "create")
    with run_server(tmp_path, "--host", "0.0.0.0") as server:
        assert server.get("/v0/health").status == 401
        assert server.get("/v0/health", token=made["token"], headers={"Host": "memory.example"}).status == 200
    cli(tmp_path, "token", "revoke", made["id"])
    assert refusal(tmp_path, "--host", "0.0.0.0")[0] == 1


@pytest.mark.parametrize("args", [["--role", "king"], ["--agents", ","], ["--expires", "2001-01-01"], ["--tenant", ""]])
def test_a_token_that_makes_no_sense_is_not_made(tmp_path: Path, args: list[str]) -> None:
    done = subprocess.run(
        command("token", "create", *args), env=environment(tmp_path), capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert cli(tmp_path, "token", "list")["tokens"] == []


def test_an_unknown_token_is_not_found(tmp_path: Path) -> None:
    for verb in ("revoke", "rotate", "remove"):
        done = subprocess.run(
            command("token", verb, "nothing"), env=environment(tmp_path), capture_output=True, text=True, check=False
        )
        assert (done.returncode, "no token nothing" in done.stderr) == (1, True)
