"""What jobs did to memories, on the page: what and why, to whom, and back by one click."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from page_browser import Visitor, text_of
from sample import consolidate
from server_process import ServerProcess, run_server, token

UNKNOWN = "0198c3f2-7b1a-7c44-9d3e-5a0b6c1d2e3f"
RULE = "agent=ada type=emotional action=archive"


@dataclass
class Team:
    server: ServerProcess
    tokens: dict[str, str]

    def visitor(self, name: str) -> Visitor:
        visitor = Visitor(self.server)
        visitor.log_in(self.tokens[name])
        return visitor

    def remember(self, content: str, **fields: Any) -> str:
        body = {"agent_id": "ada", "type": "emotional", "content": content, **fields}
        return str(self.server.post("/v0/remember", body, token=self.tokens["admin"]).json["id"])

    def run(self, job: str = "expire") -> str:
        return str(self.server.post(f"/v0/lifecycle/{job}/run", {}, token=self.tokens["admin"]).json["run_id"])

    def status(self, id: str) -> str:
        path = f"/v0/memories/{id}?agent_id=ada"
        return str(self.server.get(path, token=self.tokens["admin"]).json["status"])


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    data: Path = tmp_path_factory.mktemp("jobs")
    (data / "commonplace.toml").write_text(f'[lifecycle]\ninterval = 0\nexpire = ["{RULE}"]\n', "utf-8")
    made = {"admin": token(data, "--role", "admin", "--name", "admin")}
    made["ada"] = token(data, "--role", "writer", "--agents", "ada", "--name", "ada")
    made["bea"] = token(data, "--role", "reviewer", "--agents", "bea", "--name", "bea")
    made["reader"] = token(data, "--role", "reader", "--name", "reader")
    with run_server(data) as server:
        yield Team(server, made)


def said_by(page: Any) -> str:
    return re.sub(r"\s+", " ", text_of(page))


def test_a_run_says_what_it_did_and_which_parts_made_its_score(team: Team) -> None:
    run = consolidate(team.server, team.tokens["admin"])
    visitor = team.visitor("admin")
    listed = visitor.get("/ui/lifecycle")
    assert f'href="/ui/lifecycle/{run}"' in listed.body.decode()
    assert "consolidate 1 archived, 1 promoted" in said_by(listed)
    page = said_by(visitor.get(f"/ui/lifecycle/{run}"))
    assert "promoted Alice takes the early train on Tuesdays" in page
    assert "archived Bob wondered whether it would rain" in page
    assert re.search(r"recency 0\.00\d salience 0\.\d+ confidence 1\.000 flag 0\.000 total 0\.3\d\d", page)
    assert re.search(r"confidence 0\.200 flag 0\.000 total 0\.\d{3}", page)
    told = visitor.post(f"/ui/lifecycle/{run}/undo", {"reason": "not yet"})
    assert (told.status, "2 memories brought back." in said_by(told)) == (200, True)
    assert "Undone by admin" in said_by(told)
    assert "It was taken back already." in said_by(visitor.post(f"/ui/lifecycle/{run}/undo", {}))


def test_one_of_them_is_taken_back_by_itself(team: Team) -> None:
    one, two = team.remember("Alice was glad"), team.remember("Alice was tired")
    run = team.run()
    assert (team.status(one), team.status(two)) == ("archived", "archived")
    page = team.visitor("ada").post(f"/ui/lifecycle/{run}/undo", {"memory": one})
    assert "1 memory brought back." in said_by(page)
    assert "policy type=emotional action=archive" in said_by(page)
    assert (team.status(one), team.status(two)) == ("live", "archived")
    assert "Undone by" not in said_by(page)
    other = team.visitor("ada").post(f"/ui/lifecycle/{run}/undo", {"memory": UNKNOWN})
    assert (other.status, "did nothing to a memory" in said_by(other)) == (404, True)
    team.visitor("ada").post(f"/ui/lifecycle/{run}/undo", {})
    assert team.status(two) == "live"


def test_what_someone_has_changed_since_stays_and_is_told(team: Team) -> None:
    one, two = team.remember("Alice felt calm"), team.remember("Alice felt cold")
    run = team.run()
    forgotten = {"agent_id": "ada", "ids": [one]}
    assert team.server.post("/v0/forget", forgotten, token=team.tokens["admin"]).status == 200
    page = team.visitor("admin").post(f"/ui/lifecycle/{run}/undo", {})
    assert "1 memory brought back; 1 memory stayed." in said_by(page)
    assert f"Memory {one} was changed since" in said_by(page)
    assert team.status(two) == "live"


def test_everyone_sees_what_concerns_their_agents_and_nobody_else(team: Team) -> None:
    team.remember("Alice smiled")
    run = team.run()
    stranger = team.visitor("bea")
    assert run not in stranger.get("/ui/lifecycle").body.decode()
    unknown = stranger.get(f"/ui/lifecycle/{UNKNOWN}")
    for answer in (stranger.get(f"/ui/lifecycle/{run}"), stranger.post(f"/ui/lifecycle/{run}/undo", {})):
        assert answer.status == 404
        assert said_by(answer).replace(run, UNKNOWN) == said_by(unknown)
    assert "Counts" not in said_by(team.visitor("ada").get(f"/ui/lifecycle/{run}")), "which are of every agent"


def test_whoever_may_not_write_sees_it_and_takes_nothing_back(team: Team) -> None:
    id = team.remember("Alice laughed")
    run = team.run()
    reader = team.visitor("reader")
    page = reader.get(f"/ui/lifecycle/{run}")
    assert "Alice laughed" in said_by(page)
    assert "/undo" not in page.body.decode()
    refused = reader.post(f"/ui/lifecycle/{run}/undo", {})
    assert (refused.status, "needs the role writer" in said_by(refused)) == (403, True)
    assert team.status(id) == "archived"


def test_a_form_of_another_session_takes_nothing_back(team: Team) -> None:
    id = team.remember("Alice waited")
    run = team.run()
    visitor = team.visitor("admin")
    assert visitor.post_raw(f"/ui/lifecycle/{run}/undo", [("csrf", Visitor(team.server).csrf())]).status == 403
    assert team.status(id) == "archived"


def test_a_rule_about_reading_holds_for_what_a_run_quotes(team: Team) -> None:
    team.remember("Alice dreamt of a narwhal")
    run = team.run()
    rule = {"name": "unread", "action": "reject", "when": {"content": "narwhal", "operation": ["recall"]}}
    admin = team.tokens["admin"]
    assert team.server.call("PUT", "/v0/policies", {"rules": [rule]}, token=admin).status == 200
    try:
        assert "narwhal" not in said_by(team.visitor("ada").get(f"/ui/lifecycle/{run}"))
        assert "narwhal" not in said_by(team.visitor("ada").get("/ui/lifecycle"))
    finally:
        assert team.server.call("PUT", "/v0/policies", {"rules": []}, token=admin).status == 200


def test_runs_are_listed_by_job_and_page_by_page(team: Team) -> None:
    for i in range(22):
        team.remember(f"Alice counted {i}")
        team.run()
    visitor = team.visitor("admin")
    first = visitor.get("/ui/lifecycle?job=expire")
    runs = re.findall(r'href="/ui/lifecycle/([0-9a-f-]{36})"', first.body.decode())
    found = re.search(r'hx-get="([^"]+)"', first.body.decode())
    assert found is not None
    assert "job=expire" in found[1]
    part = visitor.get(found[1].replace("&amp;", "&"), **{"HX-Request": "true"}).body.decode()
    assert "<html" not in part
    more = re.findall(r'href="/ui/lifecycle/([0-9a-f-]{36})"', part)
    assert (len(runs), len(more) >= 2, set(runs) & set(more)) == (20, True, set())
    assert "No run has changed a memory yet." in said_by(visitor.get("/ui/lifecycle?job=dream"))
    refused = visitor.get("/ui/lifecycle?job=nothing")
    assert (refused.status, "there are expire, retain, dream, consolidate" in said_by(refused)) == (400, True)
