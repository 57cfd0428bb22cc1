"""A real server behind a real proxy: every address that it gives leads back through that proxy, and nobody else is
believed to be one."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from certificates import NAME, Certificate, make_certificate
from page_browser import Visitor
from proxy_process import ProxiedServer, run_proxy
from server_process import SECONDS, ServerProcess, command, environment, run_server, token
from staged_answers import prepare, staged_answers

CLAIMS = {
    "Forwarded": "for=192.0.2.1;proto=https;host=memory.example.org", "X-Forwarded-Proto": "https",
    "X-Forwarded-Host": NAME, "X-Forwarded-Prefix": "/memory", "X-Forwarded-For": "192.0.2.1",
    "X-Forwarded-Port": "443",
}  # fmt: skip
#: (what the proxy sets, its prefix, whether it takes the prefix away, whether the server is told of it by a flag)
WAYS = [
    ("x-forwarded", "", True, False),
    ("forwarded", "", True, False),
    ("x-forwarded", "/memory", True, False),
    ("x-forwarded", "/memory", False, False),
    ("x-forwarded", "/team/memory", True, True),
    ("x-forwarded", "/team/memory", False, True),
    ("forwarded", "/memory", True, True),
    ("forwarded", "/memory", False, True),
]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return make_certificate(tmp_path_factory.mktemp("certificate"))


@pytest.fixture(params=WAYS, ids=lambda way: "-".join(map(str, way)), scope="module")
def proxied(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, certificate: Certificate
) -> Iterator[ProxiedServer]:
    style, prefix, strip, flag = request.param
    data = tmp_path_factory.mktemp("proxied")
    secret = token(data, "--role", "admin", "--name", "alice")
    told = ("--root-path", prefix) if flag else ()
    with (
        run_server(data, "--trusted-proxy", "127.0.0.1", "--allow-host", NAME, *told) as server,
        run_proxy(server, certificate, style, prefix, strip=strip, token=secret) as proxied,
    ):
        yield proxied


def test_every_address_leads_back_through_the_proxy(proxied: ProxiedServer) -> None:
    for way, answer in staged_answers(proxied, prepare(proxied)).items():
        url = answer["approval_url"]
        assert url.startswith(f"{proxied.url}/ui/inbox/"), way
    path = proxied.prefix + url.removeprefix(proxied.url)
    visitor = Visitor(proxied, headers={"Authorization": ""})

    refused = visitor.get(path)
    assert (refused.status, refused.headers["location"][: len(proxied.prefix) + 9]) == (
        303,
        f"{proxied.prefix}/ui/login",
    )
    assert visitor.post("/ui/login", {"token": proxied.token, "next": path}).headers["location"] == path
    page = visitor.get(path)
    assert page.status == 200
    links = re.findall(r'(?:src|href|action|hx-get|hx-post|data-base)="(?!#)([^"]+)"', page.body.decode())
    assert len(links) > 10
    assert [link for link in links if not link.startswith(f"{proxied.prefix}/ui")] == []
    for link in links:
        if "/static/" in link:
            assert proxied.get(link).status == 200

    home = proxied.get("/", headers={"Accept": "text/html"})
    assert home.headers["location"] == f"{proxied.prefix}/ui/"
    assert proxied.get("/openapi.json").json["servers"] == [{"url": proxied.prefix or "/"}]
    for name in proxied.get("/schemas").json["schemas"][:3]:
        assert proxied.get(name).status == 200
    # Everything on the page of the API is relative to where that was found.
    linked = re.findall(r'(?:src|href)="(?![#]|data:)([^"]+)"', proxied.get("/docs").body.decode())
    assert linked
    assert [link for link in linked if link.startswith("/") or proxied.get(f"/{link}").status != 200] == []
    assert b'fetch("openapi.json")' in proxied.get("/docs/api.js").body
    assert proxied.get("/nothing").json["error"]["code"] == "not_found"
    assert "error" in proxied.get("/amp/nothing").json  # in the words of its protocol


def test_the_cookie_is_secure_and_only_for_what_is_served_there(proxied: ProxiedServer) -> None:
    given = proxied.get("/ui/login", token="").headers["set-cookie"]
    name, where = ("__Secure-commonplace", f"{proxied.prefix}/ui") if proxied.prefix else ("__Host-commonplace", "/")
    assert given.startswith(f"{name}=")
    assert given.split("; ")[1:] == [f"Path={where}", "HttpOnly", "SameSite=Strict", "Secure"]


def test_pages_are_those_of_the_name_that_was_asked(proxied: ProxiedServer) -> None:
    body = {"agent_id": "a", "query": "x"}
    own = f"https://{NAME}:{proxied.behind}"
    assert proxied.post("/v0/recall", body, headers={"Origin": own}).status == 200
    assert proxied.post("/v0/recall", body, headers={"Origin": "https://evil.example"}).status == 403
    assert proxied.post("/v0/recall", body, headers={"Origin": "http://127.0.0.1:8420"}).status == 403


@pytest.mark.parametrize("foreign", [{"Host": "evil.example"}, {"Origin": "https://evil.example"}], ids="".join)
def test_what_is_refused_before_a_page_is_asked_looks_like_a_page(
    proxied: ProxiedServer, foreign: dict[str, str]
) -> None:
    """Its style and its way back are under the prefix, too."""
    refused = proxied.get("/ui/inbox", headers=foreign)
    assert (refused.status, refused.headers["content-type"]) == (403, "text/html; charset=utf-8")
    links = re.findall(r'(?:src|href)="(?!#)([^"]+)"', refused.body.decode())
    assert f"{proxied.prefix}/ui/" in links
    assert [link for link in links if not link.startswith(f"{proxied.prefix}/ui")] == []
    assert [link for link in links if "/static/" in link and proxied.get(link).status != 200] == []


def test_whoever_reaches_the_proxy_needs_a_token(proxied: ProxiedServer) -> None:
    assert proxied.post("/v0/recall", {"agent_id": "a", "query": "x"}, token="wrong").status == 401


def test_a_caller_cannot_choose_the_address_itself(proxied: ProxiedServer) -> None:
    """What it sends under those names the proxy drops; one that the server is not called by is refused."""
    request = {"agent_id": "a", "type": "semantic", "content": "x", "approval_required": True}
    for name in ("X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Prefix"):
        answer = proxied.post("/v0/remember", request, headers={name: "evil"})
        assert answer.json["approval_url"].startswith(f"{proxied.url}/ui/inbox/")
    other = proxied.post("/v0/remember", request, headers={"Host": "evil.example"})
    assert (other.status, "evil.example" in other.json["error"]["message"]) == (403, True)


@pytest.mark.parametrize("name", CLAIMS)
def test_a_stranger_is_no_proxy(open_server: ServerProcess, name: str) -> None:
    """Over every protocol, in its own words, and nothing is done."""
    sentence = f"his request carries {name}, and 127.0.0.1 is no proxy that this server trusts"
    body = {"agent_id": "stranger", "type": "semantic", "content": "x"}
    for method, path in (
        ("POST", "/v0/remember"), ("POST", "/v0/rpc"), ("POST", "/amp/store"), ("POST", "/mrp/request"),
        ("GET", "/openwop/memory"), ("POST", "/mcp"), ("POST", "/v1/embeddings"), ("GET", "/healthz"),
        ("GET", "/ui/inbox"), ("GET", "/v0/reviews/stream"), ("GET", "/v0/export"), ("POST", "/v0/import"),
        ("GET", "/nothing"),
    ):  # fmt: skip
        answer = open_server.call(method, path, body if method == "POST" else None, headers={name: CLAIMS[name]})
        assert answer.status == 403, path
        assert sentence in answer.body.decode(), path
    assert open_server.get("/v0/memories?agent_id=stranger").json["memories"] == []


def test_a_trusted_network_may_be_another_one(tmp_path: Path) -> None:
    with run_server(tmp_path, "--trusted-proxy", "192.0.2.0/24") as server:
        assert server.get("/healthz").status == 200
        assert server.get("/healthz", headers={"X-Forwarded-Proto": "https"}).status == 403
        # Behind a proxy nobody is let in for being on this machine, which is where the proxy may be.
        assert server.post("/v0/recall", {"agent_id": "a", "query": "x"}).status == 401


def test_a_host_that_is_not_ours_is_refused_whatever_is_said_beside_it(tmp_path: Path) -> None:
    """A page that has made its own name lead here can send any header but that one."""
    with run_server(tmp_path, "--trusted-proxy", "127.0.0.1", "--allow-host", NAME) as server:
        assert server.get("/healthz", headers={"Host": "evil.example", "X-Forwarded-Host": NAME}).status == 403
        assert server.get("/healthz", headers={"Host": NAME, "X-Forwarded-Host": "evil.example"}).status == 403
        assert server.get("/healthz", headers={"Host": NAME, "X-Forwarded-Host": NAME}).status == 200


def test_the_public_address_is_the_operators_word(tmp_path: Path, certificate: Certificate) -> None:
    secret = token(tmp_path, "--role", "admin", "--name", "alice")
    public = "https://people.example/notes"
    with (
        run_server(
            tmp_path, "--trusted-proxy", "127.0.0.1", "--allow-host", NAME, COMMONPLACE_PUBLIC_URL=public
        ) as server,
        run_proxy(server, certificate, "x-forwarded", token=secret) as proxied,
    ):
        request = {"agent_id": "a", "type": "semantic", "content": "x", "approval_required": True}
        assert proxied.post("/v0/remember", request).json["approval_url"].startswith(f"{public}/ui/inbox/")
        assert server.out[0] == f"Open {public}/ui/ in a browser.\n"
        assert proxied.get("/ui/login", token="").headers["set-cookie"].split("; ")[1] == "Path=/notes/ui"


def test_with_a_root_path_alone_links_have_it(tmp_path: Path) -> None:
    """A proxy that says nothing at all: what the operator says is what there is."""
    with run_server(tmp_path, "--root-path", "/memory/") as server:
        assert server.out[0] == f"Open {server.url}/memory/ui/ in a browser.\n"
        request = {"agent_id": "a", "type": "semantic", "content": "x", "approval_required": True}
        for path in ("/v0/remember", "/memory/v0/remember"):
            assert server.post(path, request).json["approval_url"].startswith(f"{server.url}/memory/ui/inbox/")
        assert server.get("/", headers={"Accept": "text/html"}).headers["location"] == "/memory/ui/"
        assert server.get("/memory/memory/healthz").status == 404


@pytest.mark.parametrize(("flags", "says"), [
    (["--root-path", "memory"], "--root-path must be a path such as /memory, not 'memory'"),
    (["--root-path", "/a//b"], "--root-path must be a path such as /memory"),
    (["--root-path", "/ui"], "root_path may not begin with /ui, which is a path of this server"),
    (["--root-path", "/docs/x"], "root_path may not begin with /docs"),
    (["--trusted-proxy", "proxy.example"], "trusted_proxies are addresses or networks such as 127.0.0.1 or 10.0.0.0/8"),
])  # fmt: skip
def test_what_cannot_be_meant_is_said_at_the_start(tmp_path: Path, flags: list[str], says: str) -> None:
    done = subprocess.run(
        command("serve", "--port", "0", *flags), env=environment(tmp_path), capture_output=True, text=True,
        timeout=SECONDS, check=False,
    )  # fmt: skip
    assert (done.returncode, says in done.stderr) == (1, True), done.stderr
