"""The TypeScript client: generated from what the server says, checked by tsc, packed, installed and used with Node."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import node
import pytest
from code_blocks import blocks_of
from server_process import run_server, token

from commonplace.__about__ import DISTRIBUTION, __version__

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "packages" / "client-ts"
SETTINGS: dict[str, Any] = json.loads((PACKAGE / "package.json").read_text("utf-8"))
TOOLS = SETTINGS["devDependencies"]
COMPILER = f"typescript@{TOOLS['typescript']}"
#: Another generator than ours, of somebody else: what it makes of the same description must compile.
SECOND = "@hey-api/openapi-ts@0.87.5"
_SECONDS = 300


def run(*command: str, cwd: Path, **more: str) -> str:
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**node._environment(), **more},
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def npx(packages: tuple[str, ...], program: str, *args: str, cwd: Path) -> str:
    """A program of npm's, fetched once; a test that cannot have it is skipped, loudly, and fails where CI runs it."""
    command = ["npx", "--yes", *(part for package in packages for part in ("-p", package)), "--", program]
    if why := _missing(tuple(command)):
        if os.environ.get("CI"):
            pytest.fail(why)
        pytest.skip(why)
    return run(*command, *args, cwd=cwd)


@functools.cache
def _missing(command: tuple[str, ...]) -> str | None:
    asked = [*command, "--version"]
    try:
        got = subprocess.run(
            asked, env=node._environment(), capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{command[-1]} could not be had: {error}"
    return None if got.returncode == 0 else f"{command[-1]} could not be had: {got.stderr.strip()[-300:]}"


def tsc(*args: str, cwd: Path) -> str:
    return npx((COMPILER,), "tsc", *args, cwd=cwd)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with the package in it, as npm packs it."""
    work = tmp_path_factory.mktemp("client")
    source = work / "packages" / "client-ts"
    shutil.copytree(PACKAGE, source, ignore=shutil.ignore_patterns("dist", "node_modules", "LICENSE", "*.tgz"))
    shutil.copy(ROOT / "LICENSE", work / "LICENSE")
    tsc("--project", "tsconfig.json", cwd=source)
    shutil.copy(work / "LICENSE", source / "LICENSE")
    packed = json.loads(run("npm", "pack", "--json", "--ignore-scripts", cwd=source))
    found = packed[0] if isinstance(packed, list) else next(iter(packed.values()))
    project = work / "project"
    project.mkdir()
    (project / "package.json").write_text('{"name": "consumer", "private": true, "type": "module"}')
    run("npm", "install", "--offline", "--no-audit", "--no-fund", str(source / found["filename"]), cwd=project)
    names = {file["path"] for file in found["files"]}
    assert {"dist/index.js", "dist/index.d.ts", "src/schema.ts", "README.md", "LICENSE", "package.json"} <= names
    assert not [name for name in names if name.startswith(("test/", "node_modules/")) or name == "generate.py"]
    return project


def test_the_package_is_called_and_numbered_as_ours() -> None:
    assert (SETTINGS["name"], SETTINGS["version"]) == (DISTRIBUTION, __version__)
    assert "dependencies" not in SETTINGS
    assert SETTINGS["license"] == "Apache-2.0"


@pytest.mark.process
def test_it_is_what_the_server_says_now(tmp_path: Path) -> None:
    if why := node.available(f"openapi-typescript@{TOOLS['openapi-typescript']}"):
        pytest.skip(why)
    run(sys.executable, str(PACKAGE / "generate.py"), "--to", str(tmp_path), cwd=ROOT, PYTHONPATH=str(ROOT / "src"))
    for name in ("schema.ts", "operations.ts"):
        assert (PACKAGE / "src" / name).read_text("utf-8") == (tmp_path / name).read_text("utf-8"), (
            "the server's operations have changed: python packages/client-ts/generate.py"
        )


@pytest.mark.process
def test_right_use_is_typed_and_wrong_use_does_not_compile(installed: Path) -> None:
    shutil.copy(Path(__file__).with_name("consumer.ts"), installed / "consumer.ts")
    tsc("--noEmit", "--strict", "--target", "es2022", "--module", "nodenext", "--lib", "es2022,dom", "consumer.ts",
        cwd=installed)  # fmt: skip


@pytest.mark.process
def test_it_works_with_a_real_server(installed: Path, tmp_path: Path) -> None:
    shutil.copy(PACKAGE / "test" / "client.test.mjs", installed / "client.test.mjs")
    admin = token(tmp_path, "--role", "admin", "--name", "alice")
    reader = token(tmp_path, "--role", "reader", "--name", "bob")
    with run_server(tmp_path, "--root-path", "/memory") as server:
        for url in (server.url, f"{server.url}/memory/"):
            said = run(
                "node", "--test", "client.test.mjs", cwd=installed,
                COMMONPLACE_URL=url, COMMONPLACE_TOKEN=admin, COMMONPLACE_READER=reader,
            )  # fmt: skip
            assert "# fail 0" in said or "ℹ fail 0" in said, said


@pytest.mark.process
def test_the_program_of_its_readme_runs(installed: Path, tmp_path: Path) -> None:
    (program,) = blocks_of((PACKAGE / "README.md").read_text("utf-8"), "ts")
    with run_server(tmp_path) as server:
        here = program.replace("http://127.0.0.1:8420", server.url)
        (installed / "readme.mts").write_text(f"{here}\nconsole.log(JSON.stringify(found));\n", "utf-8")
        said = run("node", "--experimental-strip-types", "--no-warnings", "readme.mts", cwd=installed)
    assert [hit["content"] for hit in json.loads(said)["results"]] == ["Alice is allergic to peanuts"]


@pytest.mark.process
def test_another_generator_makes_something_that_compiles(tmp_path: Path) -> None:
    description = run(
        sys.executable, "-c",
        "import json, sys; sys.path.insert(0, sys.argv[1]); import generate; print(json.dumps(generate.description()))",
        str(PACKAGE), cwd=ROOT, PYTHONPATH=str(ROOT / "src"),
    )  # fmt: skip
    (tmp_path / "openapi.json").write_text(description, "utf-8")
    npx(
        (SECOND, COMPILER),
        "openapi-ts",
        "--input",
        "openapi.json",
        "--output",
        "made",
        "--plugins",
        "@hey-api/typescript",
        cwd=tmp_path,
    )
    made = list((tmp_path / "made").glob("types.gen.ts"))
    assert made
    text = made[0].read_text("utf-8")
    assert "export type RememberRequest" in text
    assert "export type RecallResponses" in text
    tsc("--noEmit", "--strict", "--target", "es2022", "--module", "nodenext", *map(str, made), cwd=tmp_path)
