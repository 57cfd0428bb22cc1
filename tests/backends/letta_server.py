"""A Letta server for tests: from an environment of its own, on a database of the tests' PostgreSQL.

Letta's wheel carries no migrations, so its tables are made from its own ORM, as its migrations would leave them. It
needs no key and reaches nothing but that database and the server of ours that makes its vectors.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from free_ports import free_port

ROOT = Path(__file__).resolve().parents[2]
_TABLES = """
import sys

import letta.orm
from letta.orm.base import Base
from sqlalchemy import create_engine

Base.metadata.create_all(create_engine(sys.argv[1]))
"""


#: A worker of pytest-xdist that ends runs nothing at its exit, and would leave the server behind.
_ENDS_WITH_ITS_STARTER = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []


def letta_python() -> Path:
    return Path(os.environ.get("COMMONPLACE_TEST_LETTA") or ROOT / ".venv-letta" / "bin" / "python")


@contextmanager
def run_letta(database: str) -> Iterator[str]:
    """Its address; `database` is the URL of an empty database with pgvector."""
    python, port = letta_python(), free_port()
    with tempfile.TemporaryDirectory() as folder:
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("LETTA", "PYTHON"))}
        environment |= {"LETTA_PG_URI": f"{database}?sslmode=disable", "LETTA_DIR": folder, "HOME": folder}
        environment |= {"OPENAI_API_KEY": "unused: nothing is inferred"}
        subprocess.run([python, "-c", _TABLES, database], env=environment, check=True, capture_output=True)
        server = subprocess.Popen(
            [*_ENDS_WITH_ITS_STARTER, python.parent / "letta", "server", "--host", "127.0.0.1", "--port", str(port)],
            env=environment, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        try:
            assert server.stdout is not None
            said = []
            for line in server.stdout:
                said.append(line)
                if "Uvicorn running" in line:  # not at "Application startup complete": it listens only after that
                    break
            else:
                raise RuntimeError(f"Letta did not start: {''.join(said)[-2000:]}")
            reading = threading.Thread(target=server.stdout.read, daemon=True)  # or it would wait for a reader
            reading.start()
            yield f"127.0.0.1:{port}"
            server.kill()
            reading.join(30)
        finally:
            server.kill()
            server.wait()
            if server.stdout is not None:
                server.stdout.close()
