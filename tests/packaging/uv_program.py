"""Where uv is, for the tests that install with it."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest


def find_uv() -> list[str]:
    """The command, from this environment or from the PATH; skips where there is none."""
    places = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    found = shutil.which("uv", path=places)
    if found is None:
        pytest.skip("uv is not installed: pip install 'commonplace-memory[test]'")
    return [found]
