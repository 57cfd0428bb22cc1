"""A model's package is fetched with pip, also where uv made an environment without one."""

from __future__ import annotations

import hashlib
import io
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from commonplace.embedders import pinned_wheel
from commonplace.wire.errors import Unavailable

_WITHOUT_PIP = """
import sys
sys.modules["pip"] = None
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name == "pip" else found(name, package)
from commonplace.embedders import pinned_wheel
print(pinned_wheel._pip())
"""


def _asked(path: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT_PIP], env={"PATH": str(path), "PYTHONPATH": ":".join(sys.path)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout.strip()


def test_without_pip_uv_is_asked_for_one(tmp_path: Path) -> None:
    uv = tmp_path / "uv"
    uv.write_text("#!/bin/sh\n")
    uv.chmod(0o755)
    assert _asked(tmp_path) == str([str(uv), "tool", "run", "pip"])


def test_without_either_the_refusal_says_what_else_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _asked(tmp_path) == str([sys.executable, "-m", "pip"])
    wanted = pinned_wheel.PinnedWheel("there-is-no-such-package", "1", "0" * 64, "ITS_WHEEL")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    with pytest.raises(Unavailable, match="set ITS_WHEEL to its path"):
        wanted.fetch()


NAME = "slow_model-1-py3-none-any.whl"


def _wheel() -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("slow_model/weights.bin", bytes(3_000_000))
        archive.writestr("slow_model-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: slow-model\nVersion: 1\n")
        archive.writestr(
            "slow_model-1.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr("slow_model-1.dist-info/RECORD", "")
    return made.getvalue()


class SlowIndex(ThreadingHTTPServer):
    """A package index that sends half of a wheel, and the rest once someone has seen that half."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _SlowFiles)
        self.wheel, self.seen = _wheel(), threading.Event()


class _SlowFiles(BaseHTTPRequestHandler):
    server: SlowIndex

    def do_GET(self) -> None:
        whole = self.path.endswith(".whl")
        data = self.server.wheel if whole else f'<a href="/{NAME}">{NAME}</a>'.encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/octet-stream" if whole else "text/html")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data[: len(data) // 2])
        if whole:
            self.wfile.flush()
            self.server.seen.wait(60)
        self.wfile.write(data[len(data) // 2 :])

    def log_message(self, *args: object) -> None: ...


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[SlowIndex]:
    with SlowIndex() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for name in ("PIP_NO_INDEX", "PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{server.server_address[1]}/simple")
        yield server
        server.seen.set()
        server.shutdown()


@pytest.mark.process
def test_what_is_here_of_a_download_is_told_while_it_comes(index: SlowIndex) -> None:
    heard: list[tuple[int, int]] = []

    def progress(done: int, total: int) -> None:
        heard.append((done, total))
        if done > 1_000_000:
            index.seen.set()

    digest = hashlib.sha256(index.wheel).hexdigest()
    wheel = pinned_wheel.PinnedWheel("slow-model", "1", digest, "ITS_WHEEL", 3)
    assert wheel.fetch(progress) == index.wheel
    assert {total for _, total in heard} == {3_000_000}
    assert any(1_000_000 < done < 3_000_000 for done, _ in heard)
