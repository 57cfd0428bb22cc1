"""CONTRIBUTING.md does what it says: its code is written to files as it stands there, and used as a reader would."""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from code_blocks import ROOT, blocks_of, files_of
from server_process import SECONDS, cli, environment, run_server

import commonplace
from commonplace.embedders.registry import open_embedder
from commonplace.plugins import open_store
from commonplace.sdk import SyncMemory
from commonplace.stores.base import Primary
from commonplace.testing import FakeClock, PrimaryContract, ReplicaContract

DOCUMENT = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
FILES = files_of(DOCUMENT)
PACKAGE = Path(commonplace.__file__).parent
MCP = {"content-type": "application/json", "accept": "application/json, text/event-stream",
       "mcp-protocol-version": "2025-11-25"}  # fmt: skip

#: Files of packages of their own; every other one belongs into ours.
OUTSIDE = {
    "shelf_store.py", "test_shelf_store.py", "letters_embedder.py", "folder_store.py", "test_folder_store.py",
}  # fmt: skip


def test_the_document_has_these_files() -> None:
    assert FILES.keys() > OUTSIDE
    assert FILES.keys() - OUTSIDE == {
        "cli/count.py", "wire/schemas/kv/put.json", "wire/schemas/kv/get.json", "dialects/kv/__init__.py",
        "serve/protocols/kv.py",
    }  # fmt: skip


def test_it_names_what_the_contract_needs_beside_us() -> None:
    """A package of its own has what serving needs, and no more."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    ours = {re.split("[^a-z0-9]", name.lower())[0] for name in project["dependencies"]}
    needed = set[str]()
    for module in (PACKAGE / "testing").rglob("*.py"):
        for node in ast.walk(ast.parse(module.read_text("utf-8"))):
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            needed |= {name.partition(".")[0] for name in names}
    needed -= {*sys.stdlib_module_names, "commonplace", *ours}
    assert "pytest" in needed
    (line,) = re.findall("`pip install ([^`]*)`", DOCUMENT)
    assert set(line.split()) == needed


# what a package of its own adds


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of packages with the modules of the document, offered by the entry points it shows."""
    packages = tmp_path / "packages"
    metadata = packages / "extras-1.0.dist-info"
    metadata.mkdir(parents=True)
    for name in OUTSIDE:
        (packages / name).write_text(FILES[name])
    groups: dict[str, dict[str, str]] = {}
    for block in blocks_of(DOCUMENT, "toml"):
        groups |= tomllib.loads(block)["project"]["entry-points"]
    assert groups.keys() == {"commonplace.stores", "commonplace.embedders"}
    lines = [f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in points.items()) for group, points in groups.items()]
    (metadata / "entry_points.txt").write_text("\n".join(lines))
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: extras\nVersion: 1.0\n")
    monkeypatch.syspath_prepend(str(packages))
    yield packages
    for name in OUTSIDE:
        sys.modules.pop(name.removesuffix(".py"), None)


def test_the_store_is_opened_by_its_url_and_keeps_what_it_is_given(installed: Path, tmp_path: Path) -> None:
    url = f"shelf://{tmp_path}/notes.shelf"
    store = open_store(url, FakeClock())
    assert isinstance(store, Primary)
    assert type(store) is import_module("shelf_store").ShelfStore
    for expected in (1, 2):
        with SyncMemory("alice", stores=[url], data=tmp_path, embedder="hashing") as memory:
            memory.remember("Alice is allergic to peanuts")
            assert len(memory.recall("peanuts").results) == expected


@pytest.mark.process
def test_the_store_is_one_that_a_configuration_names(installed: Path, tmp_path: Path) -> None:
    settings = {"COMMONPLACE_STORE": f"shelf://{tmp_path}/notes.shelf", "PYTHONPATH": f"{installed}:{PACKAGE.parent}"}
    for words in (["remember", "Alice is allergic to peanuts"], ["list"]):
        done = subprocess.run(
            [sys.executable, "-m", "commonplace.cli", *words, "--json"], env=environment(tmp_path, **settings),
            capture_output=True, text=True, timeout=SECONDS, check=True,
        )  # fmt: skip
    assert [memory["content"] for memory in json.loads(done.stdout)["memories"]] == ["Alice is allergic to peanuts"]


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.parametrize(("tests", "contract"), [("shelf", PrimaryContract), ("folder", ReplicaContract)])
def test_the_store_passes_the_whole_contract(installed: Path, tests: str, contract: type) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "addopts=", f"test_{tests}_store.py"],
        cwd=installed, env=environment(installed, PYTHONPATH=str(PACKAGE.parent)), capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    scenarios = [name for name in dir(contract) if name.startswith("test_")]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert done.returncode == 0, done.stdout
    assert passed is not None
    assert int(passed[1]) >= len(scenarios)
    assert "skipped" not in done.stdout


def test_the_embedder_is_found_by_its_name(installed: Path, tmp_path: Path) -> None:
    embedder = open_embedder("letters")
    assert embedder is not None
    assert (embedder.name, embedder.dimension) == ("letters", 26)
    with SyncMemory("alice", data=tmp_path, embedder="letters") as memory:
        memory.remember("zebra")
        memory.remember("antenna")
        assert memory.recall("az ber").results[0].content == "zebra"
        assert memory.status()["embedder"]["name"] == "letters"


def test_the_replica_has_copies_and_is_asked(installed: Path, tmp_path: Path) -> None:
    stores = [f"sqlite://{tmp_path}/memories.db", f"folder://{tmp_path}/copies"]
    with SyncMemory("alice", stores=stores, data=tmp_path, embedder="hashing") as memory:
        kept = memory.remember("Alice is allergic to peanuts")
        assert kept.stores == ["sqlite", "folder"]
        (copy,) = (tmp_path / "copies").rglob("*.json")
        assert json.loads(copy.read_text())["content"] == "Alice is allergic to peanuts"
        assert memory.recall("peanuts").stores_queried == ["sqlite", "folder"]
        memory.forget(kept.id)
        assert not copy.exists()


def test_a_replica_is_no_more_than_sixty_lines() -> None:
    assert len(FILES["folder_store.py"].splitlines()) <= 60


# what is added to ours


@pytest.fixture(scope="module")
def extended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of our sources with the files of the document in it, and the line it shows for `cli/app.py`."""
    root = tmp_path_factory.mktemp("extended")
    ours = root / "src" / "commonplace"
    shutil.copytree(PACKAGE, ours, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", root)
    for name in FILES.keys() - OUTSIDE:
        path = ours / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(FILES[name])
    (line,) = [block for block in blocks_of(DOCUMENT, "python") if block.startswith("    ")]
    heading = line[: line.index("(")]
    app = ours / "cli" / "app.py"
    before = app.read_text()
    after = re.sub(rf"^{re.escape(heading)}.*\n", line, before, flags=re.MULTILINE)
    assert after != before, "there is no such heading any more"
    app.write_text(after)
    return root


@pytest.mark.process
def test_the_protocol_is_served_over_http_and_mcp(extended: Path, tmp_path: Path) -> None:
    with run_server(tmp_path, PYTHONPATH=str(extended / "src")) as server:
        note = {"agent": "alice", "key": "tea", "value": "Assam"}
        assert server.post("/kv", note).json == {"key": "tea", "created": True}
        assert server.post("/kv", {**note, "value": "Darjeeling"}).json == {"key": "tea", "created": False}
        assert server.get("/kv/tea?agent=alice").json == {"key": "tea", "value": "Darjeeling"}
        missing = server.get("/kv/coffee?agent=alice")
        assert (missing.status, missing.json["problem"]) == (404, "not_found")
        assert server.post("/kv", {"agent": "alice"}).json["problem"] == "validation_error"
        assert "/kv/{key}" in server.get("/openapi.json").json["paths"]
        recalled = server.post("/v0/recall", {"agent_id": "alice", "query": "Darjeeling"}).json
        assert [hit["content"] for hit in recalled["results"]] == ["Darjeeling"], "every other protocol finds it"

        call = {"name": "kv_get", "arguments": {"agent": "alice", "key": "tea"}}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
        result = server.post("/mcp/kv", message, headers=MCP).json["result"]
        assert json.loads(result["content"][0]["text"]) == {"key": "tea", "value": "Darjeeling"}


@pytest.mark.process
def test_the_command_is_one_of_ours(extended: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(extended / "src"))
    cli(tmp_path, "remember", "Alice is allergic to peanuts", "--agent", "alice")
    assert cli(tmp_path, "count", "--agent", "alice") == {"count": 1}
    assert cli(tmp_path, "count", "--agent", "bob") == {"count": 0}
    done = subprocess.run(
        [sys.executable, "-m", "commonplace.cli", "--help"], env=environment(tmp_path), capture_output=True, text=True,
        timeout=SECONDS, check=True,
    )  # fmt: skip
    assert "Say how many memories an agent has." in done.stdout


@pytest.mark.process
def test_the_linters_accept_the_files(extended: Path) -> None:
    pytest.importorskip("importlinter")
    assert lint(extended) == (0, [])
    written = [f"src/commonplace/{name}" for name in FILES.keys() - OUTSIDE if name.endswith(".py")]
    ruff = [sys.executable, "-m", "ruff", "check", "--no-cache", *written]
    done = subprocess.run(ruff, cwd=extended, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.process
@pytest.mark.parametrize(
    ("line", "contract"),
    [
        ("from commonplace.dialects.amp import Amp", "dialects know nothing of one another"),
        ("from commonplace.stores.memory import InMemory", "dialects reach stores through the engine alone"),
        ("from commonplace.engine.memory import forget", "the engine has one door"),
    ],
)
def test_a_new_dialect_is_held_to_the_contracts(extended: Path, tmp_path: Path, line: str, contract: str) -> None:
    pytest.importorskip("importlinter")
    copied = tmp_path / "copy"
    shutil.copytree(extended, copied)
    dialect = copied / "src" / "commonplace" / "dialects" / "kv" / "__init__.py"
    dialect.write_text(dialect.read_text().replace("\n\nDocument =", f"\n{line}\n\nDocument ="))
    assert lint(copied) == (1, [contract])


def lint(root: Path) -> tuple[int, list[str]]:
    """Exit code of import-linter, and the contracts it finds broken."""
    program = "from importlinter.cli import lint_imports_command as lint; lint()"
    done = subprocess.run(
        [sys.executable, "-c", program, "--no-cache"],
        cwd=root, env=environment(root, PYTHONPATH=str(root / "src"), COLUMNS="200"), capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    return done.returncode, re.findall(r"^(.+?) BROKEN", done.stdout, re.MULTILINE)


def test_every_place_that_says_the_version_says_the_same() -> None:
    registry = json.loads((ROOT / "server.json").read_text("utf-8"))
    said = {registry["version"], *(package["version"] for package in registry["packages"])}
    assert said == {commonplace.__version__}
