"""Build the wheel and the sdist, install the wheel into empty environments, and use what is installed, offline.

    python tests/packaging/install_check.py            # every Python that is there, with uv and with pip

Each installation serves, recalls over HTTP, and is spoken to on stdio by the official MCP client of this environment.
Its home is read-only, its working folder is not its own, and where this is run by root it runs as another user.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
VERSIONS = ("3.11", "3.12", "3.13")
SECONDS = 300
NOBODY = 65534
MAX_MB = 350  # of an environment, with everything that serving needs
#: Put before everything else on the path: whoever reaches out is stopped, and leaves a trace.
OFFLINE = """
import os, socket, sys

def refuse(event, arguments):
    if event == "socket.getaddrinfo":
        host = arguments[0]
    elif event == "socket.connect" and isinstance(arguments[1], tuple):
        host = arguments[1][0]
    else:
        return
    if host not in (None, "", "127.0.0.1", "::1", "localhost", b"127.0.0.1", b"localhost"):
        with open(os.environ["OFFLINE_TRACE"], "a") as file:
            print(event, host, file=file)
        raise OSError(f"this test is offline, and something asked for {host}")

sys.addaudithook(refuse)
"""


@dataclass
class Installation:
    """One environment with the wheel in it, and who uses it."""

    folder: Path
    installer: str
    user: int | None = None  # None: whoever runs this
    trace: Path = field(init=False)

    def __post_init__(self) -> None:
        self.trace = self.folder / "tmp" / "reached-out"

    def program(self, name: str) -> str:
        return str(self.folder / "venv" / "bin" / name)

    def environment(self) -> dict[str, str]:
        keep = {name: os.environ[name] for name in ("LANG", "LD_LIBRARY_PATH") if name in os.environ}
        return {
            **keep, "PATH": "/usr/bin:/bin", "HOME": str(self.folder / "home"), "TMPDIR": str(self.folder / "tmp"),
            "COMMONPLACE_DATA": str(self.folder / "data"), "PYTHONPATH": str(self.folder / "offline"),
            "OFFLINE_TRACE": str(self.trace),
        }  # fmt: skip


class CannotBuild(Exception):
    """Neither wheel nor sdist could be had, and why."""


def uv() -> str:
    found = shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    if found is None:
        raise CannotBuild("uv is not installed: pip install 'commonplace-memory[test]'")
    return found


def run(*command: str, **more: object) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False, **more)  # type: ignore[call-overload]
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
    return str(done.stdout)


def build(folder: Path) -> Path:
    """The wheel, made from the sdist: what is missing from the one is missing from both."""
    command = [uv(), "build", "--quiet", "--out-dir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    if done.returncode:
        raise CannotBuild(f"the wheel could not be built: {done.stderr.strip()[-500:]}")
    (wheel,) = folder.glob("commonplace_memory-*.whl")
    (_,) = folder.glob("commonplace_memory-*.tar.gz")
    return wheel


def interpreters(version: str) -> list[Path]:
    """Those of a version that really start, the one everybody may use first."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates = [Path(f"/usr/bin/python{version}"), Path(f"/usr/local/bin/python{version}")]
    candidates += sorted(pyenv.glob(f"{version}.*/bin/python{version}"))
    if (found := shutil.which(f"python{version}")) is not None:
        candidates.append(Path(found))
    if sys.version_info[:2] == tuple(map(int, version.split("."))):
        candidates.append(Path(sys.executable))
    return [path for path in candidates if path.exists() and _answers(path, version)]


def _answers(path: Path, version: str) -> bool:
    asked = "import sys, ensurepip; print('.'.join(map(str, sys.version_info[:2])))"
    done = subprocess.run([str(path), "-c", asked], capture_output=True, text=True, check=False)
    return done.stdout.strip() == version


def install(wheel: Path, python: Path, installer: str, folder: Path) -> Installation:
    """An empty environment with the wheel in it; by uv there is no pip in it."""
    environment = str(folder / "venv")
    if installer == "uv":
        run(uv(), "venv", "--quiet", "--python", str(python), environment)
        run(uv(), "pip", "install", "--quiet", "--python", environment, str(wheel))
        assert not list((folder / "venv").rglob("site-packages/pip"))
    else:
        run(str(python), "-m", "venv", environment)
        run(f"{environment}/bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(wheel))
    for name in ("home", "data", "tmp", "offline", "elsewhere"):
        (folder / name).mkdir()
    (folder / "offline" / "sitecustomize.py").write_text(OFFLINE)
    found = Installation(folder, installer, _other_user(folder / "venv" / "bin" / "python"))
    if found.user is not None:
        for name in ("data", "tmp"):
            os.chown(folder / name, found.user, found.user)
    for name in ("home", "elsewhere"):
        (folder / name).chmod(0o555)
    return found


def _other_user(python: Path) -> int | None:
    """Another one than root, if root runs this and the interpreter is where others may read it."""
    if os.geteuid() != 0:
        return None
    everyone = stat.S_IROTH | stat.S_IXOTH
    open_to_all = all(folder.stat().st_mode & stat.S_IXOTH for folder in python.resolve().parents)
    return NOBODY if open_to_all and python.resolve().stat().st_mode & everyone == everyone else None


@contextmanager
def serving(installation: Installation) -> Iterator[str]:
    process = subprocess.Popen(
        [installation.program("commonplace"), "serve", "--port", "0"], env=installation.environment(),
        cwd=installation.folder / "elsewhere", user=installation.user, group=installation.user,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    said: list[str] = []
    try:
        for line in process.stdout:
            said.append(line)
            if found := re.search(r"listening on (http://\S+)", line):
                yield found[1]
                break
        else:
            raise AssertionError(f"the server did not start: {''.join(said)}")
    finally:
        process.terminate()
        process.communicate(timeout=SECONDS)
    assert process.returncode == 0, said


def post(url: str, body: dict[str, object]) -> dict[str, object]:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=SECONDS) as response:
        answer: dict[str, object] = json.loads(response.read())
        return answer


def use_over_http(installation: Installation) -> None:
    with serving(installation) as url:
        kept = {"agent_id": "default", "type": "semantic", "content": "Alice is allergic to peanuts"}
        post(f"{url}/v0/remember", kept)
        found = post(f"{url}/v0/recall", {"agent_id": "default", "query": "what should I not cook for Alice?"})
        assert "peanuts" in json.dumps(found["results"]), found
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        request = urllib.request.Request(
            f"{url}/mcp", json.dumps(message).encode(),
            {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"},
        )  # fmt: skip
        with urllib.request.urlopen(request, timeout=SECONDS) as response:
            assert json.loads(response.read())["result"]["tools"]


def use_over_stdio(installation: Installation) -> None:
    """By the official client, which is in this environment and not in that one."""
    from mcp import Client, StdioServerParameters
    from mcp.client.stdio import stdio_client

    command = [installation.program("commonplace-memory"), "mcp"]
    if installation.user is not None:
        user = str(installation.user)
        command = ["/usr/bin/setpriv", "--reuid", user, "--regid", user, "--clear-groups", *command]
    parameters = StdioServerParameters(
        command=command[0], args=command[1:], env=installation.environment(), cwd=installation.folder / "elsewhere"
    )

    async def talk() -> None:
        async with Client(stdio_client(parameters)) as client:
            found = await client.call_tool("recall", {"query": "what is Alice allergic to?"})
            assert "peanuts" in found.content[0].text, found

    asyncio.run(talk())


def use_by_command(installation: Installation) -> None:
    said = run(
        installation.program("commonplace"), "status", "--json", env=installation.environment(),
        cwd=installation.folder / "elsewhere", user=installation.user, group=installation.user,
    )  # fmt: skip
    assert str(installation.folder / "data") in said


def check(wheel: Path, python: Path, installer: str, folder: Path) -> str:
    """Everything, for one interpreter and one installer; what could not be tried is in the sentence."""
    folder.chmod(0o755)
    installation = install(wheel, python, installer, folder)
    size = _megabytes(folder / "venv")
    assert size <= MAX_MB, f"what is installed takes {size} MB, and may take {MAX_MB}"
    use_over_http(installation)
    use_over_stdio(installation)
    use_by_command(installation)
    assert not installation.trace.exists(), installation.trace.read_text()
    for name in ("home", "tmp", "elsewhere"):
        assert list((folder / name).iterdir()) == [], f"something was left in {name}: the data folder is the only one"
    assert list((folder / "data").iterdir())
    if installation.user is not None:
        who = "as another user than root, with a read-only home"
    elif os.geteuid() == 0:
        who = "as root, whose home stayed empty (other users cannot reach this Python)"
    else:
        who = "with a read-only home"
    return f"{size} MB; serves, recalls over HTTP, speaks MCP on stdio and over HTTP, offline, {who}"


def _megabytes(folder: Path) -> int:
    """Without compiled files, which pip writes at once and Python when it needs them."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.suffix != ".pyc") // 1_000_000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", action="append", choices=VERSIONS, help="only this version; may be given again")
    chosen = parser.parse_args().python or VERSIONS
    with tempfile.TemporaryDirectory(prefix="commonplace-install-") as temporary:
        Path(temporary).chmod(0o755)
        wheel = build(Path(temporary) / "dist")
        for version in chosen:
            found = interpreters(version)
            if not found:
                print(f"{version}: no such Python is on this machine, so nothing was tried with it")
                continue
            for installer in ("uv", "pip"):
                folder = Path(temporary) / f"{installer}-{version}"
                folder.mkdir()
                print(f"{version} with {installer}: {check(wheel, found[0], installer, folder)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
