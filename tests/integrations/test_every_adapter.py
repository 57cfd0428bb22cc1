"""What holds for every adapter, with or without its framework: refusals of a version, extras, and pages."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

import commonplace

ROOT = Path(__file__).parents[2]
PACKAGE = Path(commonplace.__file__).parent / "integrations"
_REQUIRES = re.compile(r'^with framework\("([^"]+)", "([^"]+)", extra="([^"]+)"\):', re.MULTILINE)
#: Of each module: (distribution, the least version, extra).
ADAPTERS = {
    path.stem: found.groups()
    for path in sorted(PACKAGE.glob("*.py"))
    if (found := _REQUIRES.search(path.read_text("utf-8")))
}
SHARED = {"__init__", "access", "conversation", "framework"}


def imported(module: str, *folders: Path, then: str = "") -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(map(str, (*folders, PACKAGE.parents[1])))
    program = f"import commonplace.integrations.{module}\n{then}"
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=120,
        env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip


def is_installed(module: str) -> bool:
    try:
        metadata.version(ADAPTERS[module][0])
    except metadata.PackageNotFoundError:
        return False
    return True


def test_every_module_says_what_it_needs() -> None:
    assert {path.stem for path in PACKAGE.glob("*.py")} == SHARED | ADAPTERS.keys()
    assert len(ADAPTERS) >= 2


@pytest.mark.parametrize("module", ADAPTERS)
def test_a_version_that_is_too_old_is_refused_with_a_sentence(module: str, tmp_path: Path) -> None:
    distribution, least, extra = ADAPTERS[module]
    information = tmp_path / f"{distribution.replace('-', '_')}-0.0.9.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 0.0.9\n")
    said = imported(module, tmp_path).stderr.strip().splitlines()[-1]
    assert said == (
        f"ImportError: {distribution} 0.0.9 is too old for commonplace, which needs {least} or newer: "
        f"pip install 'commonplace-memory[{extra}]'"
    )


@pytest.mark.parametrize("module", ADAPTERS)
def test_a_framework_that_is_not_there_is_named_with_the_extra_that_brings_it(module: str) -> None:
    if is_installed(module):
        pytest.skip("it is installed here; `make test` runs this without it")
    distribution, _, extra = ADAPTERS[module]
    said = imported(module).stderr.strip().splitlines()[-1]
    assert said == f"ModuleNotFoundError: {distribution} is not installed: pip install 'commonplace-memory[{extra}]'"


@pytest.mark.parametrize("module", ADAPTERS)
def test_importing_it_loads_no_engine(module: str) -> None:
    if not is_installed(module):
        pytest.skip(f"{ADAPTERS[module][0]} is not installed: make test-integrations")
    heavy = imported(module, then="import sys; print(sorted(m for m in sys.modules if m in HEAVY))".replace(
        "HEAVY", "{'commonplace.sdk', 'commonplace.engine', 'onnxruntime', 'apsw'}"
    ))  # fmt: skip
    assert (heavy.returncode, heavy.stdout.strip()) == (0, "[]"), heavy.stderr


@pytest.mark.parametrize("module", ADAPTERS)
def test_every_parameter_that_it_is_made_with_has_a_name(module: str) -> None:
    """An editor shows them, and one that is misspelt is refused."""
    tree = ast.parse((PACKAGE / f"{module}.py").read_text("utf-8"))
    made = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)
            and node.name in ("__init__", "from_defaults")]  # fmt: skip
    assert made
    assert [node.name for node in made if node.args.vararg or node.args.kwarg] == []


@pytest.mark.parametrize("module", ADAPTERS)
def test_its_extra_asks_for_the_version_that_it_needs(module: str) -> None:
    distribution, least, extra = ADAPTERS[module]
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    assert f"{distribution}>={least}" in extras[extra]


@pytest.mark.parametrize("module", ADAPTERS)
def test_it_has_a_page_that_is_found(module: str) -> None:
    page = f"{ADAPTERS[module][2]}.md"
    document = (ROOT / "docs" / page).read_text("utf-8")
    assert f"commonplace.integrations.{module}" in document
    assert f"pip install 'commonplace-memory[{ADAPTERS[module][2]}]'" in document
    for index in (ROOT / "README.md", ROOT / "docs" / "frameworks.md"):
        assert f"{page})" in index.read_text("utf-8"), index.name


def test_the_modules_that_adapters_share_know_no_framework() -> None:
    for name in SHARED:
        spec = importlib.util.spec_from_file_location(f"shared_{name}", PACKAGE / f"{name}.py")
        assert spec is not None
        source = (PACKAGE / f"{name}.py").read_text("utf-8")
        names = re.findall(r"^(?:from|import) (\w+)", source, re.MULTILINE)
        assert set(names) <= {"commonplace", *sys.stdlib_module_names}, name
