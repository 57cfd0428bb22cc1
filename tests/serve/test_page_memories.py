"""Memories, the graph, the audit trail, health, policies and tokens on the page: what they show, and to whom."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html import unescape
from typing import Any

import pytest
from conftest import TokenServer
from page_browser import Visitor, text_of
from sample import fill, pages
from server_process import STORE, ServerProcess, run_server, store_url

from commonplace.ui.routes import ROUTES, TABS


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ServerProcess, dict[str, str]]]:
    with run_server(tmp_path_factory.mktemp("filled")) as server:
        yield server, fill(server)


@pytest.fixture
def visitor(filled: tuple[ServerProcess, dict[str, str]]) -> Visitor:
    return Visitor(filled[0])


def test_every_page_is_shown_and_holds_nothing_inline(filled: Any, visitor: Visitor) -> None:
    for name, path in pages(filled[1]).items():
        answer = visitor.get(path)
        assert answer.status == 200, (name, text_of(answer))
        html = answer.body.decode()
        assert not re.search(r"<script(?![^>]* src=)|<style|\sstyle=|\son\w+=|javascript:", html), name
        assert not re.search(r'(?:src|href|action|hx-get)="(?!/ui|#)', html), name
        assert re.search(r"<h1[ >]", html), name
        assert all(f'href="/ui/{tab.path}"' in html for tab in TABS), name


def test_every_form_that_changes_something_carries_the_session(filled: Any, visitor: Visitor) -> None:
    for name, path in pages(filled[1]).items():
        html = visitor.get(path).body.decode()
        for form in re.findall(r'<form[^>]*method="post".*?</form>', html, re.S):
            assert 'name="csrf"' in form, name


def test_every_post_without_it_is_refused(visitor: Visitor) -> None:
    visitor.get("/ui/inbox")
    for route in ROUTES:
        if route.method == "POST":
            path = "/ui/" + re.sub(r"\{\w+\}", "x", route.path)
            assert visitor.post_raw(path, [("csrf", "0" * 64)]).status == 403, path


def test_a_search_says_why_each_was_found(visitor: Visitor) -> None:
    said = text_of(visitor.get("/ui/memories?q=peanuts+allergy"))
    assert "Alice is allergic to peanuts" in said
    assert "by words" in said
    part = visitor.get("/ui/memories?q=peanuts", **{"HX-Request": "true"}).body.decode()
    assert "<html" not in part
    assert "peanuts" in part


@pytest.mark.slow
def test_what_a_search_found_and_does_not_show_is_a_link_away(tmp_path: Any) -> None:
    with run_server(tmp_path, COMMONPLACE_EMBEDDER="encoder") as server:  # whose relevance is calibrated
        server.post("/v0/remember", {"agent_id": "ada", "type": "semantic", "content": "Alice paints boats & bees"})
        visitor = Visitor(server)
        page = visitor.get("/ui/memories?q=cook+%26+bake&type=semantic&agent=ada")
        assert "Nothing found answers the question" in text_of(page)
        assert "min_score" not in text_of(page)
        (link,) = re.findall(r'<a href="([^"]+)"[^>]*>Show what was found</a>', page.body.decode())
        assert unescape(link) == "/ui/memories?q=cook+%26+bake&agent=ada&type=semantic&min_score=0"
        shown = visitor.get(unescape(link))
        assert "Alice paints boats" in text_of(shown)
        assert "Show what was found" not in text_of(shown)


def test_filters_narrow_what_is_listed(visitor: Visitor) -> None:
    assert "relieved" in text_of(visitor.get("/ui/memories?type=emotional"))
    assert "peanuts" not in text_of(visitor.get("/ui/memories?type=emotional"))
    assert "lock timeout" in text_of(visitor.get("/ui/memories?tag=database"))
    assert "There are no such memories." in text_of(visitor.get("/ui/memories?until=2020-01-01"))
    assert "lock timeout" not in text_of(visitor.get("/ui/memories?agent=assistant"))
    wrong = visitor.get("/ui/memories?since=tomorrow")
    assert (wrong.status, "must be a day, such as 2026-11-16" in text_of(wrong)) == (400, True)
    assert visitor.get("/ui/memories?cursor=odd").status == 400


def test_the_timeline_leads_to_a_month(visitor: Visitor) -> None:
    found = re.findall(
        r'<a href="(/ui/memories\?[^"]*since=[^"]*)" title="(\w+ \d+: [\d,]+)"',
        visitor.get("/ui/memories?agent=assistant").body.decode(),
    )
    assert len(found) == 12
    assert found[-1][1].endswith(": 5")
    assert "peanuts" in text_of(visitor.get(found[-1][0].replace("&amp;", "&")))


def test_one_memory_has_its_history_its_origin_and_its_neighbours(filled: Any, visitor: Visitor) -> None:
    page = visitor.get(f"/ui/memories/{filled[1]['assistant']}")
    said, html = text_of(page), page.body.decode()
    assert "Version 2" in said
    assert "Version 1" in said
    assert re.search(r"<ins>[^<]*cashews[^<]*</ins>", html)
    assert "memorywire" in said
    bob = text_of(visitor.get(f"/ui/memories/{filled[1]['bob']}"))
    assert "Stated about Bob" in bob
    assert re.search(r"lives in\s+Rome", bob)


def test_a_procedure_is_drawn_as_a_picture_that_can_do_nothing(filled: Any, visitor: Visitor) -> None:
    id = filled[1]["procedure"]
    assert f"/ui/memories/{id}/drawing.svg" in visitor.get(f"/ui/memories/{id}").body.decode()
    picture = visitor.get(f"/ui/memories/{id}/drawing.svg")
    assert (picture.status, picture.headers["content-type"]) == (200, "image/svg+xml")
    assert picture.headers["content-security-policy"] == "default-src 'none'; style-src 'unsafe-inline'; sandbox"
    other = visitor.get(f"/ui/memories/{filled[1]['bob']}/drawing.svg")
    assert (other.status, "not a procedure" in text_of(other)) == (400, True)


def test_a_memory_is_forgotten_and_brought_back(visitor: Visitor) -> None:
    made = visitor.server.post("/v0/remember", {"agent_id": "gone", "type": "semantic", "content": "to be forgotten"})
    id = made.json["id"]
    led = visitor.post(f"/ui/memories/{id}/forget", {"reason": "a test"}).headers["location"]
    assert visitor.get(f"/ui/memories/{id}").status == 404
    assert "Forgotten." in text_of(visitor.get(led))
    back = visitor.post(f"/ui/memories/{id}/undo", {})
    assert back.headers["location"] == f"/ui/memories/{id}?said=restored"
    assert "It is back." in text_of(visitor.get(back.headers["location"]))


def test_what_was_archived_demoted_or_merged_is_undone_on_its_page(visitor: Visitor) -> None:
    def made(content: str, type: str) -> str:
        body = {"agent_id": "undone", "type": type, "content": content}
        return str(visitor.server.post("/v0/remember", body).json["id"])

    def undo_button(path: str, id: str) -> bool:
        return f'action="/ui/memories/{id}/undo"' in visitor.get(path).body.decode()

    archived, demoted = made("to be archived", "episodic"), made("to be demoted", "emotional")
    for action, type in (("archive", "episodic"), ("demote", "emotional")):
        policy = {"agent_id": "undone", "policy": {"type": type}, "action": action}
        assert visitor.server.post("/v0/expire", policy).status == 200
    for id, word in ((archived, "archived"), (demoted, "demoted")):
        assert f"It was {word}." in text_of(visitor.get(f"/ui/memories/{id}"))
        assert visitor.post(f"/ui/memories/{id}/undo", {}).status == 303
        assert not undo_button(f"/ui/memories/{id}", id)
    kept, lost = made("Alice likes tea", "semantic"), made("Alice likes green tea", "semantic")
    merge = {"agent_id": "undone", "canonical": kept, "duplicates": [lost]}
    assert visitor.server.post("/v0/merge", merge).status == 200
    assert undo_button(f"/ui/memories/{kept}", lost)
    assert undo_button("/ui/audit?agent=undone&operation=merge", lost)
    visitor.post(f"/ui/memories/{lost}/undo", {})
    assert "Alice likes green tea" in text_of(visitor.get(f"/ui/memories/{lost}"))
    assert not undo_button(f"/ui/memories/{kept}", lost)
    again = visitor.post(f"/ui/memories/{lost}/undo", {}).headers["location"]
    assert "There was nothing to undo." in text_of(visitor.get(again))
    unknown = visitor.post("/ui/memories/0198c3f2-7b1a-7c44-9d3e-5a0b6c1d2e3f/undo", {})
    assert (unknown.status, "can be brought back" in text_of(unknown)) == (404, True)


def test_what_was_forgotten_is_brought_back_from_the_ledger(visitor: Visitor) -> None:
    body = {"agent_id": "ledgered", "type": "semantic", "content": "found again"}
    id = visitor.server.post("/v0/remember", body).json["id"]
    visitor.post(f"/ui/memories/{id}/forget", {})
    page = visitor.get("/ui/audit?agent=ledgered&operation=forget").body.decode()
    assert f'action="/ui/memories/{id}/undo"' in page
    visitor.post(f"/ui/memories/{id}/undo", {})
    assert "found again" in text_of(visitor.get(f"/ui/memories/{id}"))


def test_the_graph_is_a_picture_one_walks(visitor: Visitor) -> None:
    start = visitor.get("/ui/graph?agent=assistant").body.decode()
    assert "about=Bob" in start
    html = visitor.get("/ui/graph?agent=assistant&about=Bob").body.decode()
    names = re.findall(r'<a href="/ui/graph\?agent=assistant&amp;about=([^"]+)" class="node', html)
    assert names[0] == "Bob"
    assert {"Rome", "Alice", "billing+service", "Italy", "pilot"} <= set(names)
    assert "Friday" not in names, "three steps away"
    assert html.count('class="edge"') == 9
    for name in names:
        assert visitor.get(f"/ui/graph?agent=assistant&about={name}").status == 200
    assert "Nothing is stated about this now." in text_of(visitor.get("/ui/graph?agent=assistant&about=nobody"))


def test_the_ledger_is_filtered_page_by_page_and_exported(visitor: Visitor) -> None:
    said = text_of(visitor.get("/ui/audit?operation=graph_assert"))
    assert "graph_assert" in said
    assert "remember" not in re.sub(r"(?s).*By\s+About", "", said)
    lines = visitor.get("/ui/audit/export?operation=remember")
    assert lines.headers["content-disposition"] == 'attachment; filename="audit.jsonl"'
    entries = [json.loads(line) for line in lines.body.splitlines()]
    assert {entry["operation"] for entry in entries} == {"remember"}
    assert [entry["n"] for entry in entries] == sorted(entry["n"] for entry in entries)
    assert entries[0]["parts"][0]["payload"]["version"] == 1


def test_the_chain_is_verified_beside_and_told(visitor: Visitor) -> None:
    assert visitor.post("/ui/audit/verify", {}).headers["location"] == "/ui/audit"
    while "Verifying" in (said := text_of(visitor.get("/ui/audit"))):
        pass
    assert "entries are as they were written" in said


def test_health_tells_what_there_is_and_what_waits(visitor: Visitor) -> None:
    page = visitor.get("/ui/health")
    said = re.sub(r"\s+", " ", text_of(page))
    assert "Embedder hashing" in said
    assert re.search(r"Reviews \d", said)
    assert "<polyline points=" in page.body.decode()
    assert "page_health" in text_of(visitor.get("/ui/health"))


def test_health_tells_of_every_store_and_of_what_fails(tmp_path: Any) -> None:
    (tmp_path / "export").write_text("a file where a folder should be")
    settings = f'[audit]\nexport = "{tmp_path / "export"}"\n'
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "commonplace.toml").write_text(settings, "utf-8")
    stores = ("--store", store_url(tmp_path / "first.db"), "--store", f"sqlite://{tmp_path / 'second.db'}")
    with run_server(tmp_path / "data", *stores) as server:
        server.post("/v0/remember", {"agent_id": "a", "type": "semantic", "content": "copied"})
        server.post("/v0/lifecycle/audit/run", {})
        said = re.sub(r"\s+", " ", text_of(Visitor(server).get("/ui/health")))
    copy = "sqlite-2" if STORE == "sqlite" else "sqlite"
    assert re.search(f"Stores Store Role Status Waiting Behind {STORE} .*primary ok 0 {copy}.* replica ok", said)
    assert "The ledger was not exported" in said
    assert "The job audit failed" in said


def test_a_rule_is_tried_kept_and_replaced(visitor: Visitor) -> None:
    rule = {"action": "review", "content": "(?i)deploy", "name": "deploys", "days": "30"}
    tried = text_of(visitor.post("/ui/policies/try", {**rule, "do": "try"}))
    assert re.search(r"“deploys” would have caught [1-9]", tried)
    assert "feature flag" in tried
    assert visitor.post("/ui/policies/try", {**rule, "do": "keep"}).headers["location"] == "/ui/policies?said=saved"
    kept = visitor.server.get("/v0/policies").json["rules"]
    assert [each["name"] for each in kept][-1] == "deploys"
    rest = json.dumps(kept[:-1])
    assert visitor.post("/ui/policies", {"rules": rest, "do": "keep"}).status == 303
    assert visitor.server.get("/v0/policies").json["rules"] == kept[:-1]
    for wrong, said in (
        ("{", "rules must be a json list"),
        ("{}", "must be a json list"),
        ('[{"name": "x"}]', "action"),
    ):
        answer = visitor.post("/ui/policies", {"rules": wrong, "do": "keep"})
        assert (answer.status, said in text_of(answer).lower()) == (400, True), wrong
    odd = visitor.post("/ui/policies/try", {**rule, "content": "(", "do": "try"})
    assert (odd.status, "Traceback" in odd.body.decode()) == (400, False)


def test_what_is_always_approved_becomes_a_rule_or_is_forgotten(visitor: Visitor) -> None:
    """In a server with tokens: whoever approves their own write teaches nothing."""
    assert visitor.post("/ui/policies/learned/none", {"do": "accept"}).status == 404
    assert visitor.post("/ui/policies/learned/none", {"do": "revoke"}).status == 404


def test_suggestions_are_accepted_and_revoked(guarded: TokenServer) -> None:
    server, admin = guarded.server, guarded.tokens["globex"]
    rule = {"name": "all", "action": "review", "when": {"agent": ["ada"]}}
    assert server.call("PUT", "/v0/policies", {"rules": [rule]}, token=admin).status == 200
    for i in range(2):
        request = {"agent_id": "ada", "type": "semantic", "content": f"note {i}"}
        review = server.post("/v0/remember", request, token=guarded.tokens["globex/ada"]).json["review_id"]
        assert server.post(f"/v0/reviews/{review}", {"approved": True}, token=admin).status == 200
    visitor = Visitor(server)
    visitor.log_in(admin)
    page = visitor.get("/ui/policies")
    assert "approved 2 times in a row" in text_of(page)
    found = re.search(r"/ui/policies/learned/([0-9a-f]{16})", page.body.decode())
    assert found is not None
    assert visitor.post(f"/ui/policies/learned/{found[1]}", {"do": "accept"}).status == 303
    rules = server.get("/v0/policies", token=admin).json["rules"]
    assert (rules[0]["action"], rules[0]["when"]["agent"], rules[1]["name"]) == ("allow", ["ada"], "all")
    request = {"agent_id": "ada", "type": "semantic", "content": "note 3"}
    assert server.post("/v0/remember", request, token=guarded.tokens["globex/ada"]).json["pending_approval"] is False
    assert visitor.post(f"/ui/policies/learned/{found[1]}", {"do": "revoke"}).status == 303
    assert "times in a row" not in text_of(visitor.get("/ui/policies"))
    assert server.call("PUT", "/v0/policies", {"rules": []}, token=admin).status == 200


def test_tokens_are_made_rotated_revoked_and_removed_by_the_operator(guarded: TokenServer) -> None:
    visitor = Visitor(guarded.server)
    visitor.log_in(guarded.tokens["operator"])
    made = visitor.post("/ui/tokens", {"name": "dora", "role": "reader", "agents": "ada, team-*", "days": "9"})
    found = re.search(r"<code>(cp_(\w+?)_[\w-]+)</code>", made.body.decode())
    assert found is not None
    secret, id = found[1], found[2]
    assert guarded.server.get("/v0/status", token=secret).status == 200
    assert secret not in visitor.get("/ui/tokens").body.decode()
    rotated = visitor.post(f"/ui/tokens/{id}", {"do": "rotate"}).body.decode()
    assert "shown this once" in rotated
    assert secret not in rotated
    assert visitor.post(f"/ui/tokens/{id}", {"do": "remove"}).status == 409
    assert visitor.post(f"/ui/tokens/{id}", {"do": "revoke"}).status == 303
    assert visitor.post(f"/ui/tokens/{id}", {"do": "remove"}).status == 303
    assert f"/ui/tokens/{id}" not in visitor.get("/ui/tokens").body.decode()
    for wrong in (
        {"name": "x", "role": "king"},
        {"name": "x", "role": "reader", "days": "soon"},
        {"name": "local", "role": "admin"},
    ):
        assert visitor.post("/ui/tokens", wrong).status == 400, wrong


@pytest.mark.parametrize("role", ["acme/reader", "acme/writer", "acme/ada", "acme"])
def test_what_a_token_may_not_see_is_neither_offered_nor_shown(guarded: TokenServer, role: str) -> None:
    visitor = Visitor(guarded.server)
    visitor.log_in(guarded.tokens[role])
    html = visitor.get("/ui/inbox").body.decode()
    reviews = role in ("acme/ada", "acme")
    for path, allowed in (
        ("audit", reviews),
        ("policies", reviews),
        ("tokens", False),
        ("memories", True),
        ("health", True),
    ):
        assert (f'href="/ui/{path}"' in html) is allowed, path
        answer = visitor.get(f"/ui/{path}")
        assert answer.status == (200 if allowed else 403), path
        if not allowed:
            assert "cp_" not in answer.body.decode()


def test_memories_of_others_answer_like_those_that_never_were(guarded: TokenServer) -> None:
    made = {}
    for token, agent in (("acme", "bea"), ("globex", "ada")):
        request = {"agent_id": agent, "type": "semantic", "content": f"secret of {token}"}
        made[token] = guarded.server.post("/v0/remember", request, token=guarded.tokens[token]).json["id"]
    visitor = Visitor(guarded.server)
    visitor.log_in(guarded.tokens["acme/ada"])
    said = set()
    for id in (*made.values(), "01900000-0000-7000-8000-000000000000"):
        for answer in (
            visitor.get(f"/ui/memories/{id}"),
            visitor.get(f"/ui/memories/{id}/drawing.svg"),
            visitor.post(f"/ui/memories/{id}/forget", {}),
        ):
            assert answer.status == 404
            said.add(re.sub(r"\s+", " ", text_of(answer)).replace(id, "ID"))
    assert len(said) == 1
    for path in ("/ui/memories", "/ui/memories?q=secret", "/ui/graph", "/ui/health"):
        assert "secret of" not in text_of(visitor.get(path))
        assert "bea" not in text_of(visitor.get(path)), path
    for path in ("/ui/memories?agent=bea", "/ui/graph?agent=bea", "/ui/audit?agent=bea"):
        assert visitor.get(path).status == 403, path
    assert visitor.post("/ui/audit/verify", {}).status == 403, "the chain is about all agents"
