"""Take the steps of the Dockerfile in a fresh folder and use what they make: `make try-image`.

    python tests/deploy/image_check.py [--keep FOLDER]

It installs from the package index, as the build would, then serves as the image's user, where this is run by root: a
first start without a token is refused, a token is made, the server gets ready by the image's own health check, a memory
is kept and found after a stop and a new start.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path
from typing import Any

from dockerfile import ROOT, Container, parse

SECONDS = 60
PORT = "18420"


def python_for_all() -> str:
    """One that the image's user may run, too: that of whoever calls this may lie in a home of theirs."""
    places = [f"{folder}/python3.{minor}" for minor in (13, 12, 11) for folder in ("/usr/local/bin", "/usr/bin")]
    other = {"user": 10001} if os.getuid() == 0 else {}
    for found in (*places, sys.executable):
        if Path(found).exists():
            asked = [found, "-c", "import ensurepip, venv"]
            if subprocess.run(asked, capture_output=True, check=False, **other).returncode == 0:  # type: ignore[call-overload]
                return found
    sys.exit(
        "there is no Python here that another user may run: install one, such as Debian's python3 and python3-venv"
    )


def build(folder: Path) -> Container:
    first, second = parse((ROOT / "Dockerfile").read_text("utf-8"))
    python = python_for_all()
    made = Container(folder / "build", python)
    made.run(first)
    image = Container(folder / "image", python, {"build": made.folder})
    image.run(second)
    # The environment was made in the first stage's folder, and stands at one path in both stages of a real build.
    for script in (image.folder / "opt" / "commonplace" / "bin").iterdir():
        if script.is_file() and not script.is_symlink() and script.read_bytes().startswith(b"#!"):
            script.write_text(script.read_text("utf-8").replace(str(made.folder), str(image.folder)), "utf-8")
    return image


class Running:
    def __init__(self, image: Container) -> None:
        self.image = image
        data = image.environment["COMMONPLACE_DATA"]
        self.environment = {
            **image.environment, "COMMONPLACE_PORT": PORT, "HOME": data, "COMMONPLACE_EMBEDDER": "encoder",
            **{name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ},
        }  # fmt: skip
        user, group = map(int, image.user.split(":"))
        self.identity: dict[str, Any] = {"user": user, "group": group, "extra_groups": []} if os.getuid() == 0 else {}

    def command(self, *args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self._words("ENTRYPOINT", *args), env=self.environment, capture_output=True, text=True, check=False,
            cwd=self.image.environment["COMMONPLACE_DATA"], timeout=SECONDS, **self.identity,
        )  # fmt: skip

    def start(self) -> subprocess.Popen[bytes]:
        words = self._words("ENTRYPOINT", *self.image.command["CMD"])
        data = self.image.environment["COMMONPLACE_DATA"]
        process = subprocess.Popen(words, env=self.environment, stdout=subprocess.DEVNULL, cwd=data, **self.identity)
        while self.healthy().returncode:
            assert process.poll() is None, "the server has ended"
        return process

    def healthy(self) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self._words("HEALTHCHECK"), env=self.environment, capture_output=True, text=True, check=False,
            timeout=SECONDS, **self.identity,
        )  # fmt: skip

    def post(self, path: str, body: dict[str, Any], token: str) -> Any:
        headers = {"Authorization": f"Bearer {token}"}
        request = urllib.request.Request(f"http://127.0.0.1:{PORT}{path}", json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            return json.load(answer)

    def _words(self, name: str, *args: str) -> list[str]:
        program, *rest = self.image.command[name]
        rest = [str(self.image.inside(word)) if word.startswith("/opt") else word for word in rest]
        return [str(self.image.inside(f"/opt/commonplace/bin/{program}")), *rest, *args]


def check(image: Container) -> None:
    here = Running(image)
    refused = here.command("serve")
    assert refused.returncode == 1, refused
    assert "without tokens" in refused.stderr, refused.stderr
    assert here.healthy().returncode == 1
    made = here.command("token", "create", "--role", "admin", "--json")
    assert made.returncode == 0, made.stderr
    token = json.loads(made.stdout)["token"]
    kept = {"agent_id": "default", "type": "semantic", "content": "Alice is allergic to peanuts"}
    for turn in range(2):
        process = here.start()
        try:
            if turn == 0:
                here.post("/v0/remember", kept, token)
            found = here.post("/v0/recall", {"agent_id": "default", "query": "what can Alice not eat?"}, token)
            assert found["results"][0]["content"] == kept["content"], found
        finally:
            process.terminate()
            assert process.wait(SECONDS) in (0, -15), process.returncode
    owners = {path.stat().st_uid for path in image.inside("/data").rglob("*")}
    assert owners == {here.identity.get("user", os.getuid())}, owners


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--keep", type=Path)
    given = parser.parse_args().keep
    folder = given or Path(tempfile.mkdtemp(prefix="commonplace-image-"))
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)
    try:
        image = build(folder)
        check(image)
        size = sum(path.lstat().st_size for path in image.folder.rglob("*") if path.is_file() and not path.is_symlink())
        print(
            f"the steps of the Dockerfile make a server that keeps and finds; {size / 1e6:.0f} MB beside the base image"
        )
    finally:
        if given is None:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
