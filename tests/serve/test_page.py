"""The page over HTTP: who gets in, what a form must carry, what browsers are told, and whose things are shown."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

import pytest
from conftest import TokenServer
from page_browser import Visitor, text_of
from server_process import ServerProcess, cli, run_server

from commonplace.ui.routes import ROUTES

REMEMBER = {"agent_id": "ada", "type": "semantic", "content": "Bob moved to Oslo", "approval_required": True}


def staged(guarded: TokenServer, token: str = "acme", **fields: Any) -> str:
    answer = guarded.server.post("/v0/remember", {**REMEMBER, **fields}, token=guarded.tokens[token])
    review: str = answer.json["review_id"]
    return review


@pytest.fixture
def reviewer(guarded: TokenServer) -> Visitor:
    visitor = Visitor(guarded.server)
    assert visitor.log_in(guarded.tokens["acme/ada"]).status == 303
    return visitor


def test_a_browser_is_led_to_the_page_and_a_program_to_the_docs(open_server: ServerProcess) -> None:
    assert open_server.get("/", headers={"Accept": "text/html,*/*;q=0.8"}).headers["location"] == "/ui/"
    assert open_server.get("/", headers={"Accept": "*/*"}).headers["location"] == "/docs"
    assert open_server.get("/ui").headers["location"] == "/ui/inbox"


def test_the_address_of_the_page_is_printed_first(open_server: ServerProcess) -> None:
    assert open_server.out[0] == f"Open {open_server.url}/ui/ in a browser.\n"


def test_every_answer_tells_the_browser_to_run_nothing_and_ask_nobody_else(open_server: ServerProcess) -> None:
    for path in ("/ui/inbox", "/ui/login", "/ui/nothing", "/ui/static/style.css", "/ui/inbox/none"):
        headers = open_server.get(path).headers
        policy = dict(part.strip().partition(" ")[::2] for part in headers["content-security-policy"].split(";"))
        assert policy["default-src"] == "'none'"
        assert {policy[name] for name in ("script-src", "style-src", "img-src", "connect-src", "form-action")} == {
            "'self'"
        }
        assert (policy["frame-ancestors"], policy["base-uri"]) == ("'none'", "'none'")
        assert headers["x-frame-options"] == "DENY"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"
        assert headers["cross-origin-opener-policy"] == "same-origin"


def test_no_page_holds_an_inline_script_or_style_or_an_address_elsewhere(open_server: ServerProcess) -> None:
    for path in ("/ui/inbox", "/ui/login", "/ui/nothing"):
        html = open_server.get(path).body.decode()
        assert not re.search(r"<script(?![^>]* src=)|<style|\sstyle=|\son\w+=|javascript:", html), path
        assert not re.search(r'(?:src|href|action)="(?!/ui|#)', html), path


def test_the_cookie_is_for_this_site_and_no_script(open_server: ServerProcess) -> None:
    given = open_server.get("/ui/inbox").headers["set-cookie"]
    name, _, rest = given.partition("=")
    assert name == f"commonplace_{open_server.port}"
    assert rest.split("; ")[1:] == ["Path=/ui", "HttpOnly", "SameSite=Strict"]
    assert "set-cookie" not in Visitor(open_server, given.partition(";")[0]).get("/ui/inbox").headers


def test_the_script_and_the_style_are_kept_by_browsers_until_they_change(open_server: ServerProcess) -> None:
    page = open_server.get("/ui/inbox").body.decode()
    for address in re.findall(r'"(/ui/static/[^"]+\?v=[0-9a-f]{12})"', page):
        answer = open_server.get(address)
        assert (answer.status, "immutable" in answer.headers["cache-control"]) == (200, True)
    for wrong in ("nothing.css", "../page.py", "%2e%2e/page.py", ""):
        assert open_server.get(f"/ui/static/{wrong}").status == 404


def test_without_a_login_nothing_is_shown(guarded: TokenServer) -> None:
    review = staged(guarded)
    for route in ROUTES:
        path = "/ui/" + route.path.replace("{review}", review)
        visitor = Visitor(guarded.server)
        if route.method == "GET":
            answer = visitor.get(path)
            assert (answer.status, answer.body) == (303, b""), path
            assert answer.headers["location"].startswith("/ui/login?next=%2Fui%2F"), path
        else:
            assert visitor.post(path, {}).status == 401, path


def test_who_logs_in_comes_where_they_wanted_to_go(guarded: TokenServer) -> None:
    review = staged(guarded)
    visitor = Visitor(guarded.server)
    wanted = visitor.get(f"/ui/inbox/{review}?edit=1").headers["location"]
    page = visitor.get(wanted).body.decode()
    found = re.search(r'name="next" value="([^"]*)"', page)
    assert found is not None
    assert found[1] == f"/ui/inbox/{review}?edit=1"
    before = visitor.cookie
    answer = visitor.post("/ui/login", {"token": guarded.tokens["acme/ada"], "next": found[1]})
    assert (answer.status, answer.headers["location"]) == (303, found[1])
    assert visitor.cookie != before, "a session that was there before may have been planted"
    assert "Bob moved to Oslo" in text_of(visitor.get(found[1]))


@pytest.mark.parametrize("wanted", [
    "https://evil.example/", "//evil.example/", "/\\evil.example", "/v0/x", "/uix", "", "/ui/€", "/ui/\0x", "/ui/\x0b",
    "/ui/a b", "/ui/\x7f", "/ui/x\r\nSet-Cookie: a=b", "/ui/\\..\\evil", "/ui/../../evil", "/ui/.", "/ui/x/..?a=b",
    "/ui/%2e%2E/evil", "/ui/.%2e/evil", "/ui/%2e%2e%2fevil", "/ui/..#x",
])  # fmt: skip
def test_a_login_leads_nowhere_else(guarded: TokenServer, wanted: str) -> None:
    answer = Visitor(guarded.server).post("/ui/login", {"token": guarded.tokens["acme/ada"], "next": wanted})
    assert answer.headers["location"] == "/ui/"


@pytest.mark.parametrize("wanted", ["/ui/memories?q=a..b&agent=%E2%82%AC", "/ui/x%E2%82%AC", "/ui/a..b", "/ui"])
def test_a_login_leads_to_any_page_that_is_spelled_as_an_address(guarded: TokenServer, wanted: str) -> None:
    token = guarded.tokens["acme/ada"]
    answer = Visitor(guarded.server).post("/ui/login", {"token": token, "next": wanted})
    assert (answer.status, answer.headers["location"]) == (303, wanted)
    if wanted != "/ui":
        led = Visitor(guarded.server).get(wanted).headers["location"]
        assert led == f"/ui/login?next={quote(wanted, safe='')}", "a page that was asked for is spelled so, too"


def test_a_wrong_token_is_told_so_and_is_not_repeated(guarded: TokenServer) -> None:
    for wrong in ("", "cp_nothing_secret", guarded.tokens["acme/ada"] + "x", "é\r\n", "x" * 10_000):
        answer = Visitor(guarded.server).post("/ui/login", {"token": wrong})
        assert answer.status == 401
        assert "This token is not known, has expired or was revoked" in text_of(answer)
        assert not wrong.strip() or wrong.strip() not in answer.body.decode()


def test_who_logs_out_is_out(guarded: TokenServer, reviewer: Visitor) -> None:
    before = reviewer.cookie
    assert reviewer.get("/ui/inbox").status == 200
    assert reviewer.post("/ui/logout", {}).headers["location"] == "/ui/login"
    assert Visitor(guarded.server, before).get("/ui/inbox").status == 303
    assert reviewer.get("/ui/inbox").status == 303


@pytest.mark.parametrize("csrf", [None, "", "0" * 64, "é"])
def test_a_form_that_is_not_of_this_session_does_nothing(guarded: TokenServer, csrf: str | None) -> None:
    visitor = Visitor(guarded.server)
    visitor.log_in(guarded.tokens["acme/ada"])
    review = staged(guarded)
    given = [] if csrf is None else [("csrf", csrf)]
    for path, form in (
        (f"/ui/inbox/{review}", [("decision", "approve")]),
        ("/ui/inbox", [("decision", "approve"), ("review", f"{review}:1")]),
        ("/ui/logout", []),
        ("/ui/login", [("token", guarded.tokens["acme/ada"])]),
    ):
        answer = visitor.post_raw(path, [*given, *form])
        assert answer.status == 403, path
        assert "load the page and try again" in text_of(answer)
    assert guarded.server.get(f"/v0/reviews/{review}", token=guarded.tokens["acme"]).json["status"] == "pending"
    assert visitor.get("/ui/inbox").status == 200


def test_a_token_of_another_session_is_no_use(guarded: TokenServer, reviewer: Visitor) -> None:
    stranger = Visitor(guarded.server)
    review = staged(guarded)
    answer = reviewer.post_raw(f"/ui/inbox/{review}", [("csrf", stranger.csrf()), ("decision", "approve")])
    assert answer.status == 403


def test_forms_of_other_sites_are_refused_in_words(guarded: TokenServer, reviewer: Visitor) -> None:
    review = staged(guarded)
    for headers in ({"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}):
        answer = reviewer.post(f"/ui/inbox/{review}", {"decision": "approve"}, **headers)
        assert (answer.status, answer.headers["content-type"]) == (403, "text/html; charset=utf-8")
        assert "may not call this server" in text_of(answer)
    own = {"Origin": guarded.server.url}
    assert reviewer.post(f"/ui/inbox/{review}", {"decision": "approve"}, **own).status == 303


def test_a_body_that_is_no_form_is_refused(reviewer: Visitor) -> None:
    json = {"Content-Type": "application/json", "Cookie": reviewer.cookie}
    answer = reviewer.server.call("POST", "/ui/inbox", b"{}", headers=json)
    assert (answer.status, "send a form" in text_of(answer).lower()) == (400, True)


def test_a_link_on_another_site_comes_with_its_cookie_after_one_bounce(reviewer: Visitor) -> None:
    """The browser keeps a SameSite cookie back when another site led here; a page of ours that leads here does not."""
    stranger = Visitor(reviewer.server)
    answer = stranger.get("/ui/inbox?status=all", **{"Sec-Fetch-Site": "cross-site"})
    assert (answer.status, "set-cookie" in answer.headers) == (200, False)
    assert '<meta http-equiv="refresh" content="0; url=/ui/inbox?status=all">' in answer.body.decode()
    assert stranger.get("/ui/inbox", **{"Sec-Fetch-Site": "same-origin"}).status == 303


def test_a_review_that_is_not_yours_answers_like_one_that_never_was(guarded: TokenServer) -> None:
    theirs = staged(guarded, agent_id="bea")
    other_tenant = staged(guarded, "globex")
    visitor = Visitor(guarded.server)
    visitor.log_in(guarded.tokens["acme/ada"])
    said = set()
    for id in (theirs, other_tenant, "01900000-0000-7000-8000-000000000000"):
        shown = visitor.get(f"/ui/inbox/{id}")
        tried = visitor.post(f"/ui/inbox/{id}", {"decision": "approve"})
        assert (shown.status, tried.status) == (404, 404)
        said |= {re.sub(r"\s+", " ", text_of(each)).replace(id, "ID") for each in (shown, tried)}
    assert len(said) == 1
    listed = text_of(visitor.get("/ui/inbox?status=all"))
    assert theirs not in listed
    assert "bea" not in listed
    bulk = visitor.post(
        "/ui/inbox", [("decision", "approve"), ("review", f"{theirs}:1"), ("review", f"{other_tenant}:1")]
    )
    assert (bulk.status, text_of(bulk).count(": no review")) == (409, 2)
    for id, token in ((theirs, "acme"), (other_tenant, "globex")):
        assert guarded.server.get(f"/v0/reviews/{id}", token=guarded.tokens[token]).json["status"] == "pending"


def test_whoever_asked_sees_it_and_cannot_decide(guarded: TokenServer) -> None:
    review = staged(guarded, "acme/writer")
    visitor = Visitor(guarded.server)
    visitor.log_in(guarded.tokens["acme/writer"])
    page = visitor.get(f"/ui/inbox/{review}")
    assert "a reviewer decides" in text_of(page)
    assert 'value="approve"' not in page.body.decode()
    answer = visitor.post(f"/ui/inbox/{review}", {"decision": "approve"})
    assert (answer.status, "needs the role reviewer" in text_of(answer)) == (403, True)


def test_a_revoked_token_ends_its_sessions(guarded: TokenServer) -> None:
    made = cli(guarded.server.data, "token", "create", "--role", "reviewer", "--tenant", "acme")
    visitor = Visitor(guarded.server)
    visitor.log_in(made["token"])
    assert visitor.get("/ui/inbox").status == 200
    cli(guarded.server.data, "token", "revoke", made["id"])
    while visitor.get("/ui/inbox").status == 200:  # noticed within a quarter of a second
        pass
    assert visitor.get("/ui/inbox").status == 303


def test_what_cannot_be_is_said_in_a_sentence(reviewer: Visitor, guarded: TokenServer) -> None:
    review = staged(guarded)
    for form, status, said in (
        ({"decision": "maybe"}, 400, "Choose approve, reject or edit"),
        ({"decision": "approve", "revision": "x"}, 400, "revision must be a whole number"),
        ({"decision": "approve", "revision": "7"}, 409, "is at revision 1, not 7; look again"),
        ({"decision": "merge", "other": "nothing"}, 404, "no memory nothing"),
        ({"decision": "approve_edited", "content": "x", "metadata": "{"}, 400, "metadata must be JSON"),
    ):
        answer = reviewer.post(f"/ui/inbox/{review}", form)
        assert answer.status == status, form
        assert said.lower() in text_of(answer).lower()
        assert "Traceback" not in answer.body.decode()
    for path, status in (("/ui/inbox?status=odd", 400), ("/ui/nothing", 404), ("/ui/inbox/a/b", 404)):
        assert reviewer.get(path).status == status
    assert reviewer.post("/ui/inbox", {"decision": "approve"}).status == 400
    assert reviewer.post("/ui/nothing", {}).status == 404


def test_what_a_reviewer_typed_is_not_lost_when_it_is_refused(reviewer: Visitor, guarded: TokenServer) -> None:
    review = staged(guarded)
    form = {"decision": "approve_edited", "content": "a long new text", "type": "semantic", "metadata": "{"}
    assert "a long new text" in reviewer.post(f"/ui/inbox/{review}", form).body.decode()


def test_an_edit_waits_with_a_fresh_diff_or_is_approved(reviewer: Visitor, guarded: TokenServer) -> None:
    review = staged(guarded, metadata={"tags": ["home"], "room": 3})
    page = reviewer.get(f"/ui/inbox/{review}?edit=1").body.decode()
    assert '<textarea name="content"' in page
    form = {"content": "Bob moved to Bergen", "type": "semantic", "tags": "home", "confidence": "1.0",
            "title": "", "source": "", "metadata": '{\n "room": 3\n}', "revision": "1"}  # fmt: skip
    saved = reviewer.post(f"/ui/inbox/{review}", {**form, "decision": "edit"})
    assert saved.headers["location"] == f"/ui/inbox/{review}?said=edited"
    found = guarded.server.get(f"/v0/reviews/{review}", token=guarded.tokens["acme"]).json
    assert (found["status"], found["revision"]) == ("pending", 2)
    assert found["diff"]["added"][0]["content"] == "Bob moved to Bergen"
    done = reviewer.post(
        f"/ui/inbox/{review}", {**form, "content": "Bob moved to Bodø", "revision": "2", "decision": "approve_edited"}
    )
    assert done.status == 303
    found = guarded.server.get(f"/v0/reviews/{review}", token=guarded.tokens["acme"]).json
    assert (found["status"], found["request"]["content"]) == ("approved", "Bob moved to Bodø")
    kept = guarded.server.get(f"/v0/memories/{found['memory_id']}?agent_id=ada", token=guarded.tokens["acme"]).json
    assert (kept["content"], kept["metadata"]["room"], kept["metadata"]["tags"]) == ("Bob moved to Bodø", 3, ["home"])


def test_apply_lets_a_new_memory_join_one_or_take_its_place(guarded: TokenServer, reviewer: Visitor) -> None:
    token = guarded.tokens["acme"]
    for verdict in ("merge", "replace"):
        text = f"{verdict}: Alice drinks green tea"
        known = guarded.server.post(
            "/v0/remember", {**REMEMBER, "content": text, "approval_required": False}, token=token
        ).json["id"]
        review = staged(guarded, content=f"{text} at noon")
        assert known in reviewer.get(f"/ui/inbox/{review}").body.decode()
        done = reviewer.post(f"/ui/inbox/{review}", {"decision": verdict, "other": known, "revision": "1"})
        assert done.status == 303, text_of(done)
        held = guarded.server.get(f"/v0/memories/{known}?agent_id=ada", token=token)
        if verdict == "merge":
            assert held.json["content"] == f"{text}\n{text} at noon"
        else:
            assert held.status == 404


def test_many_are_decided_at_once_each_as_it_was_seen(reviewer: Visitor, guarded: TokenServer) -> None:
    ids = [staged(guarded, content=f"bulk {i}") for i in range(3)]
    edited = guarded.server.call(
        "PATCH", f"/v0/reviews/{ids[2]}", {"request": {**REMEMBER, "content": "another"}}, token=guarded.tokens["acme"]
    )
    assert edited.status == 200
    answer = reviewer.post("/ui/inbox", [("decision", "reject"), *(("review", f"{id}:1") for id in ids)])
    assert answer.status == 409
    assert "Rejected 2 of 3." in text_of(answer)
    assert "is at revision 2, not 1" in text_of(answer)


def test_decided_reviews_are_listed_newest_first(reviewer: Visitor, guarded: TokenServer) -> None:
    ids = [staged(guarded, content=f"old {i}") for i in range(2)]
    for id in ids:
        reviewer.post(f"/ui/inbox/{id}", {"decision": "reject", "reason": "hearsay"})
    page = reviewer.get("/ui/inbox?status=rejected").body.decode()
    assert page.index(ids[1]) < page.index(ids[0])
    assert "hearsay" in text_of(reviewer.get(f"/ui/inbox/{ids[0]}"))


def test_an_empty_store_shows_how_to_begin(tmp_path: Any) -> None:
    with run_server(tmp_path) as server:
        assert 'commonplace remember "Alice is allergic to peanuts"' in text_of(Visitor(server).get("/ui/inbox"))
