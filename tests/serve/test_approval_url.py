"""Every staged answer says where a person decides about it, whichever protocol it came by."""

from __future__ import annotations

import asyncio
import subprocess
from typing import Any

import pytest
from conftest import TokenServer
from page_browser import Visitor, text_of
from server_process import ServerProcess, cli, command, environment, run_server
from staged_answers import AGENT, prepare, staged_answers

from commonplace.config import Config
from commonplace.serve.shared_embedder import open_session_engine


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with run_server(tmp_path_factory.mktemp("urls")) as server:
        yield server, prepare(server)


def test_every_protocol_says_where(server: tuple[ServerProcess, list[str]]) -> None:
    at, known = server
    answers = {**staged_answers(at, known), "command": cli(at.data, "remember", "h", "--agent", AGENT)}
    for way, answer in answers.items():
        assert "approval_url" in answer, (way, answer)
        url = answer["approval_url"]
        assert url.startswith(f"{at.url}/ui/inbox/"), way
        page = Visitor(at).get(url.removeprefix(at.url))
        assert page.status == 200, way
        assert 'value="approve"' in page.body.decode(), way


def test_a_command_tells_a_person(server: tuple[ServerProcess, list[str]]) -> None:
    at, _ = server
    done = subprocess.run(
        command("remember", "said", "--agent", "staged-b"),
        env=environment(at.data),
        capture_output=True,
        text=True,
        check=True,
    )
    assert f", or {at.url}/ui/inbox/" in done.stdout


def test_without_a_server_nothing_is_promised(tmp_path: Any) -> None:
    assert cli(tmp_path, "remember", "x", "--approval")["approval_url"] is None


def test_a_server_on_another_store_is_promised_to_no_session(tmp_path: Any) -> None:
    """Its page would say that there is no such review."""

    async def promised(store: str) -> str:
        engine = await open_session_engine(Config(data=tmp_path, store=store, stores=(store,), embedder="hashing"))
        await engine.close()
        return engine._core.settings.review_url

    with run_server(tmp_path) as server:
        assert asyncio.run(promised(f"sqlite://{tmp_path}/commonplace.db")).startswith(server.url)
        assert asyncio.run(promised(f"sqlite://{tmp_path}/other.db")) == ""


def test_a_public_address_is_what_people_are_given(tmp_path: Any) -> None:
    with run_server(tmp_path, COMMONPLACE_PUBLIC_URL="https://memory.example.org/") as server:
        request = {"agent_id": "a", "type": "semantic", "content": "x", "approval_required": True}
        url = server.post("/v0/remember", request).json["approval_url"]
        assert url.startswith("https://memory.example.org/ui/inbox/")
        assert server.out[0] == "Open https://memory.example.org/ui/ in a browser.\n"


def test_the_page_that_is_named_asks_for_the_token_first(guarded: TokenServer) -> None:
    request = {"agent_id": "ada", "type": "semantic", "content": "url", "approval_required": True}
    url = guarded.server.post("/v0/remember", request, token=guarded.tokens["acme"]).json["approval_url"]
    path = url.removeprefix(guarded.server.url)
    visitor = Visitor(guarded.server)
    assert visitor.get(path).status == 303
    visitor.log_in(guarded.tokens["acme/ada"])
    assert "url" in text_of(visitor.get(path))
