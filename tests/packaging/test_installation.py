"""What is built installs into an empty environment and works there: see install_check.py, which people can run, too."""

from __future__ import annotations

import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from install_check import OFFLINE, VERSIONS, CannotBuild, build, check, interpreters, run

HERE = ".".join(map(str, sys.version_info[:2]))
#: With uv every Python that is there; pip takes minutes, so it is tried with the one that runs the tests.
CASES = [*((version, "uv") for version in VERSIONS), (HERE, "pip")]


@pytest.fixture(scope="module")
def wheel() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="commonplace-dist-") as folder:
        Path(folder).chmod(0o755)
        try:
            yield build(Path(folder))
        except CannotBuild as reason:
            pytest.skip(str(reason))


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("version", "installer"), CASES)
def test_it_installs_and_works(wheel: Path, version: str, installer: str) -> None:
    found = interpreters(version)
    if not found:
        pytest.skip(f"there is no Python {version} on this machine")
    # Not in tmp_path: other users, as whom it is run, cannot reach that.
    with tempfile.TemporaryDirectory(prefix="commonplace-install-") as folder:
        assert "MCP" in check(wheel, found[0], installer, Path(folder))


@pytest.mark.slow
def test_the_wheel_has_the_package_and_the_sdist_what_it_is_made_of(wheel: Path) -> None:
    packed = zipfile.ZipFile(wheel).namelist()
    assert "commonplace/embedders/encoder-int8.onnx" in packed
    assert "commonplace/py.typed" in packed
    assert {name.split("/")[0].split("-")[0] for name in packed} == {"commonplace", "commonplace_memory"}
    (sdist,) = wheel.parent.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", "src/commonplace/__init__.py"} <= names


def test_whoever_reaches_out_is_stopped_and_noticed(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(OFFLINE)
    trace = tmp_path / "trace"
    program = "import socket\ntry: socket.create_connection(('example.com', 80))\nexcept OSError as e: print(e)"
    said = run(sys.executable, "-c", program, env={"PYTHONPATH": str(tmp_path), "OFFLINE_TRACE": str(trace)})
    assert "offline" in said
    assert "example.com" in trace.read_text()
