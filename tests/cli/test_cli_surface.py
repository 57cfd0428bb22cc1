"""What everyone sees: help, documentation, completion, colours, and how little a command loads."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from command_tree import LEAVES

from commonplace import __version__
from commonplace.cli.app import COMMANDS

DOCS = Path(__file__).parents[2] / "docs" / "cli.md"
EVERYWHERE = {"--json", "--data", "--agent"}
SURFACE = {
    "remember", "recall", "forget", "merge", "expire", "get", "list", "history", "update", "status", "audit list",
    "audit verify", "backup", "compact", "reindex", "doctor", "demo", "model build", "model verify", "model list",
    "model add", "model remove", "model switch",
    "review list", "review show", "review approve", "review reject", "review edit", "review apply",
    "policy list", "policy set", "policy test", "policy learned", "policy revoke",
    "kg assert", "kg query", "kg history", "kg path", "kg neighbors", "kg retract", "kg erase",
}  # fmt: skip


def _flags(found: Any) -> set[str]:
    return {flag for p in found.params if p.param_type_name == "option" for flag in (*p.opts, *p.secondary_opts)}


def test_the_surface_is_whole() -> None:
    assert set(LEAVES) >= SURFACE
    assert {path.split()[0] for path in LEAVES} == set(COMMANDS)


@pytest.mark.parametrize("path", LEAVES)
def test_every_command_explains_itself(cli, path: str) -> None:
    ran = cli(*path.split(), "--help")
    assert ran.code == 0
    assert "Example:" in ran.out
    assert f"commonplace {path}" in ran.out
    purpose = inspect.cleandoc(LEAVES[path].help).split("\n\n")[0]
    assert purpose.endswith(".")
    assert len(purpose) <= 90
    assert all(p.help for p in LEAVES[path].params), "every option says what it is"
    assert _flags(LEAVES[path]) >= EVERYWHERE


@pytest.mark.parametrize("path", [path for path in LEAVES if " " in path])
def test_a_list_of_commands_has_their_whole_sentences(cli, path: str) -> None:
    group, name = path.split()
    purpose = inspect.cleandoc(LEAVES[path].help).split("\n\n")[0]
    listed = " ".join(cli(group, "--help").out.split("\nCommands:\n")[1].split())
    assert f"{name} {' '.join(purpose.split())}".partition(". ")[0] in listed


@pytest.mark.parametrize("path", LEAVES)
def test_an_option_without_its_value_leads_to_the_help_of_its_command(cli, path: str) -> None:
    refused = cli(*path.split(), "--data")
    assert refused.code == 1
    assert refused.err.endswith(f"`commonplace {path} --help` shows how it is used.\n")


@pytest.mark.parametrize("group", ["", "audit", "kg", "model", "mrp", "review", "token", "trust"])
def test_groups_explain_themselves(cli, group: str) -> None:
    asked, alone = cli(*group.split(), "--help"), cli(*group.split())
    assert "Example:" in asked.out
    assert (alone.code, alone.out.strip(), alone.err) == (0, asked.out.strip(), "")


def test_completion_is_the_business_of_one_command(cli) -> None:
    assert "-completion" not in cli("--help").out
    assert cli("--show-completion").code == cli("--install-completion").code == 1


def test_the_documentation_lists_every_command_and_option() -> None:
    parts = re.split(r"^## ", DOCS.read_text("utf-8"), flags=re.MULTILINE)
    sections = {match[1]: part for part in parts if (match := re.match(r"`commonplace ([a-z ]+)`", part))}
    everywhere = next(part for part in parts if part.startswith("Everywhere"))
    assert {path for path in sections if path in LEAVES} == set(LEAVES)
    groups = {"audit", "identity", "kg", "model", "mrp", "palace", "policy", "review", "token", "trust"}
    assert set(sections) - set(LEAVES) <= groups
    for flag in EVERYWHERE:
        assert f"`{flag}" in everywhere
    for path, found in LEAVES.items():
        documented = set(re.findall(r"`(-{1,2}[a-z][a-z-]*)", sections[path]))
        expected = _flags(found) - EVERYWHERE
        assert expected <= documented, f"{path}: {expected - documented} not documented"
        table = set(re.findall(r"(?:^\| |, )`(-{1,2}[a-z][a-z-]*)", sections[path], flags=re.MULTILINE))
        assert table <= expected, f"{path}: {table - expected} documented, but there is no such option"
        assert inspect.cleandoc(found.help).split("\n\n")[0] in sections[path]


@pytest.mark.parametrize("flag", ["--version", "-V"])
def test_version(cli, flag: str) -> None:
    assert cli(flag).out == f"commonplace {__version__}\n"


# From here on in processes of their own, as users start them.


def _run(*args: str, data: Path, **env: str) -> subprocess.CompletedProcess[str]:
    program = "import sys; from commonplace.cli import main; sys.exit(main())"
    return subprocess.run(
        [sys.executable, "-c", program, *args], capture_output=True, text=True, check=False, timeout=60,
        env={**os.environ, "COMMONPLACE_DATA": str(data), "COMMONPLACE_EMBEDDER": "none", **env},
    )  # fmt: skip


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script(shell: str, data: Path) -> None:
    ran = _run(data=data, _COMMONPLACE_COMPLETE=f"source_{shell}")
    assert ran.returncode == 0
    assert "_COMMONPLACE_COMPLETE" in ran.stdout


def test_completion_answers(data: Path) -> None:
    ran = _run(data=data, _COMMONPLACE_COMPLETE="complete_bash", COMP_WORDS="commonplace re", COMP_CWORD="1")
    assert set(ran.stdout.split()) == {"remember", "recall", "review", "recover", "reindex", "restore"}
    words = "commonplace remember --type e"
    ran = _run(data=data, _COMMONPLACE_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD="3")
    assert set(ran.stdout.split()) == {"episodic", "emotional"}


def test_commands_load_only_what_they_need(data: Path) -> None:
    program = (
        "import sys; from commonplace.cli import main\n"
        "assert not {'typer', 'rich', 'numpy', 'pydantic', 'asyncio'} & set(sys.modules), 'import'\n"
        "assert main(['list']) == 0\n"
        "assert not {'rich', 'onnxruntime', 'tokenizers', 'jsonschema_rs'} & set(sys.modules)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False,
        env={**os.environ, "COMMONPLACE_DATA": str(data), "COMMONPLACE_EMBEDDER": "encoder"},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr


def test_a_pipe_that_closes_early_is_quiet(cli, tmp_path: Path, data: Path) -> None:
    path = tmp_path / "many.jsonl"
    path.write_text(f'"{"word " * 200}"\n' * 400, "utf-8")
    assert cli("remember", "--batch", str(path)).code == 0
    program = "import sys; from commonplace.cli import main; sys.exit(main())"
    with subprocess.Popen(
        [sys.executable, "-c", program, "list", "--all"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "COMMONPLACE_DATA": str(data), "COMMONPLACE_EMBEDDER": "none"},
    ) as running:  # fmt: skip
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.read(10)
        running.stdout.close()
        assert running.stderr.read() == b""
    assert running.returncode == 141


@pytest.mark.parametrize("closed", ["stdout", "stderr"])
def test_a_mistake_that_nobody_reads_of_leaves_no_stack_trace(closed: str, data: Path) -> None:
    program = "import sys; from commonplace.cli import main; sys.exit(main())"
    read, write = os.pipe()
    os.close(read)
    try:
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, closed: write}
        ran = subprocess.run(
            [sys.executable, "-c", program, "get", "nothing", *(["--json"] if closed == "stdout" else [])],
            **streams, check=False, env={**os.environ, "COMMONPLACE_DATA": str(data), "COMMONPLACE_EMBEDDER": "none"},
        )  # fmt: skip
    finally:
        os.close(write)
    assert ran.returncode == 141
    assert not ran.stdout
    assert not ran.stderr


def test_a_terminal_gets_a_table_with_whole_ids_and_colour_only_if_wanted(remember, on_a_terminal) -> None:
    id = remember("Alice is allergic to [bold]peanuts[/bold] " + "and more " * 20, "--tag", "food", "--tag", "health")
    code, coloured = on_a_terminal(["list"])
    assert code == 0
    assert "\x1b[" in coloured
    assert "─" in coloured
    assert id in coloured
    assert "[bold]" in coloured
    _, plain = on_a_terminal(["list"], NO_COLOR="1")
    assert "─" in plain
    assert id in plain
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]", plain)


def test_ids_stay_whole_on_a_terminal_of_80_columns(cli, remember, on_a_terminal, data: Path) -> None:
    data.mkdir(exist_ok=True)
    (data / "commonplace.toml").write_text('[lifecycle]\nexpire = ["type=emotional"]\n', "utf-8")
    one, two = remember("Alice likes tea"), remember("Alice likes green tea", "--source", "mail")
    cli("merge", one, two)
    felt = remember("Alice was glad " * 20, "--type", "emotional", "--agent", "a-rather-long-name-of-an-agent")
    run = cli("lifecycle", "run", "expire", "--json").json["run_id"]
    review = cli("remember", "Alice likes coffee", "--approval", "--json").json["review_id"]
    for args, ids in (
        (["audit", "list"], [one, two, felt]),
        (["recover", "--source", "mail", "--dry-run"], [one]),
        (["reviews", "list"], [review]),
        (["lifecycle", "history"], [run]),
        (["lifecycle", "show", run], [felt]),
    ):
        code, said = on_a_terminal(args, NO_COLOR="1")
        assert code == 0, said
        for id in ids:
            assert id in said, (args, said)
        lines = re.sub(r"\x1b\[[0-9;]*m", "", said).splitlines()
        assert max(map(len, (line for line in lines if "`" not in line))) <= 80, said


def test_piped_output_has_no_boxes(cli, remember) -> None:
    remember("one")
    cli("remember", "two", "--approval")
    for args in (["list"], ["recall", "one"], ["reviews", "list"], ["audit", "list"], ["doctor"], ["model", "list"]):
        assert not set(cli(*args).out) & set("─│┃━┏┡\x1b"), args


def test_a_person_is_asked_before_much_is_forgotten(cli, remember, on_a_terminal) -> None:
    one, two = remember("one", "--user", "alice"), remember("two", "--user", "alice")
    code, said = on_a_terminal(["forget", "--where", "user_id=alice"], b"n\n")
    assert code == 1
    assert "Forget these 2 memories? [y/N]" in said
    assert one in said
    assert len(cli("list").out.splitlines()) == 2
    code, said = on_a_terminal(["forget", one, "--hard"], b"y\n")
    assert code == 0
    assert "Erase this 1 memory for good?" in said
    code, said = on_a_terminal(["forget", two])
    assert code == 0
    assert "[y/N]" not in said
    assert cli("list").out == ""


def test_a_person_is_asked_before_someone_is_erased_from_every_agent(cli, remember, on_a_terminal) -> None:
    for agent in ("default", "work"):
        remember("she likes tea", "--user", "alice", "--agent", agent)
    code, said = on_a_terminal(["forget", "--user", "alice", "--hard"], b"n\n")
    assert code == 1
    asked = "Erase these 2 memories of 2 agents: default (1), work (1) for good? [y/N]"
    assert asked in " ".join(said.split())
    assert len(cli("list").out.splitlines()) == len(cli("list", "--agent", "work").out.splitlines()) == 1
