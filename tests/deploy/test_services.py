"""compose.yaml, the systemd unit and the proxies' settings: read by what they are for, where that is here."""

from __future__ import annotations

import configparser
import json
import os
import re
import shutil
import signal
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from certificates import NAME, Certificate, make_certificate
from dockerfile import ROOT
from free_ports import free_port
from proxy_process import ProxiedServer
from server_process import SECONDS, ServerProcess, run_server, token
from system_packages import NotInstalled, require_program
from test_image import IMAGE, SETTINGS, of

from commonplace.config import MIB
from commonplace.serve.server import STOP_SECONDS
from commonplace.wire.record import MAX_CONTENT_CHARS

COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))
UNIT = ROOT / "deploy" / "commonplace.service"


def test_compose_has_a_server_and_its_database() -> None:
    server, database = COMPOSE["services"]["commonplace"], COMPOSE["services"]["postgres"]
    assert database["image"].startswith("pgvector/pgvector:")
    assert {name for name in server["environment"] if name.startswith("COMMONPLACE_")} <= SETTINGS
    password = database["environment"]["POSTGRES_PASSWORD"]
    assert password.startswith("${POSTGRES_PASSWORD:?"), "there is no default to forget about"
    assert server["environment"]["PGPASSWORD"] == password
    assert password not in server["environment"]["COMMONPLACE_STORE"]
    named = [volume.partition(":")[0] for service in (server, database) for volume in service["volumes"]]
    assert sorted(named) == sorted(COMPOSE["volumes"])
    assert server["volumes"] == [f"data:{of('VOLUME', IMAGE)[0].words[0]}"]
    assert all(port.startswith("127.0.0.1:") for port in server["ports"]), "others come through a proxy"
    assert server["depends_on"] == {"postgres": {"condition": "service_healthy"}}
    assert (server["read_only"], server["cap_drop"]) == (True, ["ALL"])
    assert int(server["stop_grace_period"].removesuffix("s")) > STOP_SECONDS


def test_the_server_of_compose_keeps_its_memories_in_its_database(tmp_path: Path) -> None:
    """With the variables that it is given, the empty ones too, and a PostgreSQL that asks for the password."""
    pytest.importorskip("psycopg")
    from postgres_databases import server as postgres
    from postgres_server import PASSWORD

    name = postgres().create_database()
    given = {
        key: re.sub(r"\$\{\w+:-\}", "", value)
        for key, value in COMPOSE["services"]["commonplace"]["environment"].items()
    }
    assert given["COMMONPLACE_STORE"] == "postgresql://commonplace@postgres/commonplace"
    settings = given | {
        "COMMONPLACE_STORE": f"postgresql://postgres@127.0.0.1:{postgres().port}/{name}",
        "PGPASSWORD": PASSWORD,
        **{each.text.partition("=")[0]: each.text.partition("=")[2] for each in of("ENV") if "_HOST=" in each.text},
    }
    try:
        secret = token(tmp_path, "--role", "admin", **settings)
        for turn in range(2):
            with run_server(tmp_path, **settings) as server:
                body = {"agent_id": "a", "type": "semantic", "content": "Alice is allergic to peanuts"}
                assert turn or server.post("/v0/remember", body, token=secret).status == 200
                found = server.post("/v0/recall", {"agent_id": "a", "query": "peanuts"}, token=secret).json["results"]
                assert [each["content"] for each in found] == [body["content"]]
                assert server.post("/v0/recall", {"agent_id": "a", "query": "peanuts"}, token="x").status == 401
            assert PASSWORD not in "".join(server.out + server.err)
        assert not (tmp_path / "commonplace.db").exists()
    finally:
        postgres().drop_database(name)


def test_docker_reads_it_where_there_is_docker() -> None:
    asked = ["docker", "compose", "version"]
    if shutil.which("docker") is None or subprocess.run(asked, capture_output=True, check=False).returncode:
        pytest.skip("docker compose is not installed; compose.yaml was only parsed")
    command = ["docker", "compose", "-f", str(ROOT / "compose.yaml"), "config", "--format", "json"]
    environment = {**os.environ, "POSTGRES_PASSWORD": "x"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["services"].keys() == {"commonplace", "postgres"}
    environment.pop("POSTGRES_PASSWORD")
    without = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (without.returncode != 0, "POSTGRES_PASSWORD" in without.stderr) == (True, True)


def test_the_unit_waits_for_what_is_in_flight_and_does_not_repeat_mistakes() -> None:
    unit = configparser.RawConfigParser(strict=False)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(UNIT)
    service = unit["Service"]
    assert int(service["TimeoutStopSec"]) > STOP_SECONDS
    assert (service["Restart"], service["RestartPreventExitStatus"]) == ("on-failure", "1")
    assert service["User"] == "commonplace"
    assert service["ExecStart"].endswith("/commonplace serve")
    assert (service["NoNewPrivileges"], service["ProtectSystem"]) == ("yes", "strict")


def test_the_folder_and_a_token_are_there_before_the_service_starts() -> None:
    document = (ROOT / "docs" / "deployment.md").read_text("utf-8").partition("## systemd")[2]
    steps = document.split("```")[1].splitlines()
    ordered = ("useradd", "install -d -o commonplace", "token create", "systemctl enable --now")
    found = [next(number for number, step in enumerate(steps) if part in step) for part in ordered]
    assert found == sorted(found)


def test_systemd_reads_the_unit_where_there_is_systemd(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed; the unit was only parsed")
    # It looks for the program, which is not installed there, and for the user.
    text = UNIT.read_text("utf-8").replace("/opt/commonplace/bin/commonplace", "/bin/true")
    here = tmp_path / UNIT.name
    here.write_text(text.replace("=commonplace\n", "=root\n"), "utf-8")
    done = subprocess.run(["systemd-analyze", "verify", str(here)], capture_output=True, text=True, check=False)
    said = [line for line in (done.stdout + done.stderr).splitlines() if UNIT.name in line]
    assert said == []


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return make_certificate(tmp_path_factory.mktemp("certificate"))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[ServerProcess, str]]:
    secret = token(tmp_path / "data", "--role", "admin", "--name", "alice")
    with run_server(tmp_path / "data", "--trusted-proxy", "127.0.0.1", "--allow-host", NAME) as found:
        yield found, secret


def program(name: str) -> str:
    """COMMONPLACE_TEST_NGINX and COMMONPLACE_TEST_CADDY say where one is that is not on the path."""
    if found := os.environ.get(f"COMMONPLACE_TEST_{name.upper()}"):
        return found
    try:
        return str(require_program(name, serves=True))
    except NotInstalled as why:
        pytest.skip(f"OUR SETTINGS FOR {name.upper()} WERE NOT TRIED: {why}")


@contextmanager
def running(command: list[str], folder: Path, log: Path) -> Iterator[None]:
    environment = {
        "HOME": str(folder),
        "PATH": os.environ["PATH"],
        "LD_LIBRARY_PATH": os.environ.get("LD_LIBRARY_PATH", ""),
    }
    with log.open("wb") as file:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=file, stderr=file)
        try:
            yield
            assert process.poll() is None, log.read_text("utf-8")
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(SECONDS)


def proxied(server: ServerProcess, secret: str, certificate: Certificate, port: int, prefix: str = "") -> ProxiedServer:
    tls = ssl.create_default_context(cafile=str(certificate.cert))
    url = f"https://{NAME}:{port}{prefix}"
    found = ProxiedServer(server.process, url, server.data, [], [], tls, port, prefix, secret)
    while True:  # until it listens
        try:
            found.get("/healthz")
        except ConnectionRefusedError:
            continue
        return found


def check(at: ProxiedServer) -> None:
    """What leads people back through the proxy, and that its callers cannot choose that."""
    request = {"agent_id": "a", "type": "semantic", "content": "x", "approval_required": True}
    spoofed = {
        "X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "http", "X-Forwarded-Prefix": "/evil",
        "X-Forwarded-For": "127.0.0.1", "X-Forwarded-Port": "1", "Forwarded": "host=evil.example;proto=http",
    }  # fmt: skip
    for headers in ({}, *({name: value} for name, value in spoofed.items()), spoofed):
        answer = at.post("/v0/remember", request, headers=headers)
        assert answer.status == 200, (headers, answer.body)
        assert answer.json["approval_url"].startswith(f"{at.url}/ui/inbox/"), headers
    assert at.get("/ui/login", token="").headers["set-cookie"].endswith("; Secure")
    assert at.get("/", headers={"Accept": "text/html"}).headers["location"] == f"{at.prefix}/ui/"
    origin = {"Origin": f"https://{NAME}:{at.behind}"}
    assert at.post("/v0/recall", {"agent_id": "a", "query": "x"}, headers=origin).status == 200
    assert at.post("/v0/remember", {**request, "content": "x" * (4 * MIB)}).status == 413
    check_import(at)


def check_import(at: ProxiedServer) -> None:
    """A file may be larger than any other body, and what is wrong with one our server says."""
    for letter in "茶水米木火土":  # of three bytes each
        body = {"agent_id": "a", "type": "semantic", "content": letter * MAX_CONTENT_CHARS}
        assert at.post("/v0/remember", body).status == 200
    exported = at.get("/v0/export").body
    assert len(exported) > 4 * MIB
    spoofed = {"X-Forwarded-Host": "evil.example", "X-Forwarded-Prefix": "/evil"}  # refused where they pass
    taken = at.post("/v0/import?dry_run=true", exported, headers=spoofed)
    assert (taken.status, taken.json["dry_run"]) == (200, True), taken.body[:300]
    refused = at.post("/v0/import", exported, token="wrong")
    assert (refused.status, refused.code) == (401, "unauthenticated")
    large = at.post("/v0/import", b" " * (64 * 4 * MIB + 1))
    assert (large.status, large.code) == (413, "payload_too_large")


def test_nginx_with_our_settings(server: tuple[ServerProcess, str], certificate: Certificate, tmp_path: Path) -> None:
    nginx, (at, secret), port = program("nginx"), server, free_port()
    ours = (ROOT / "deploy" / "nginx.conf").read_text("utf-8")
    lines = re.search(r"proxy_pass .*?\n(.*?)\n    }\n", ours, re.DOTALL)
    assert lines is not None
    # As the documentation shows it: under a path, beside the rest.
    below = lines[1].replace('X-Forwarded-Prefix ""', "X-Forwarded-Prefix /memory")
    below = below.replace("location = /v0/import", "location = /memory/v0/import")
    below = below.replace("proxy_pass http://127.0.0.1:8420;", "proxy_pass http://127.0.0.1:8420/v0/import;")
    ours = ours.replace(
        "    location / {",
        f"    location /memory/ {{\n proxy_pass http://127.0.0.1:8420/;\n{below}\n}}\n    location / {{",
    )
    ours = ours.replace("listen 443", f"listen 127.0.0.1:{port}").replace("127.0.0.1:8420", f"127.0.0.1:{at.port}")
    ours = re.sub(r"/etc/ssl/\S+\.pem", str(certificate.cert), ours)
    ours = re.sub(r"/etc/ssl/\S+\.key", str(certificate.key), ours)
    temporary = "".join(
        f"{kind}_temp_path {tmp_path}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    user = "user root;" if os.getuid() == 0 else ""
    settings = tmp_path / "nginx.conf"
    settings.write_text(
        f"{user} daemon off; pid {tmp_path}/pid; error_log stderr; events {{}}\n"
        f"http {{ access_log off; {temporary}\n{ours}\n}}\n", "utf-8"
    )  # fmt: skip
    command = [nginx, "-e", "stderr", "-p", str(tmp_path), "-c", str(settings)]
    with running(command, tmp_path, tmp_path / "log"):
        check(proxied(at, secret, certificate, port))
        check(proxied(at, secret, certificate, port, "/memory"))


def test_caddy_with_our_settings(server: tuple[ServerProcess, str], certificate: Certificate, tmp_path: Path) -> None:
    caddy, (at, secret), port = program("caddy"), server, free_port()
    ours = (ROOT / "deploy" / "Caddyfile").read_text("utf-8")
    ours = ours.replace(
        "memory.example.org {",
        f"https://{NAME}:{port} {{\n\tbind 127.0.0.1\n\ttls {certificate.cert} {certificate.key}",
    )
    settings = tmp_path / "Caddyfile"
    settings.write_text(
        "{\n\tadmin off\n\tauto_https off\n}\n" + ours.replace("127.0.0.1:8420", f"127.0.0.1:{at.port}"), "utf-8"
    )
    command = [caddy, "run", "--config", str(settings), "--adapter", "caddyfile"]
    with running(command, tmp_path, tmp_path / "log"):
        check(proxied(at, secret, certificate, port))
