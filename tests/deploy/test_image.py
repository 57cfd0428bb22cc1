"""The Dockerfile says what the documentation promises of it; `make try-image` takes its steps."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from dataclasses import fields
from fnmatch import fnmatch
from pathlib import Path

from certificates import make_certificate
from dockerfile import ROOT, Instruction, parse
from server_process import run_server

from commonplace.config import Config

BUILD, IMAGE = parse((ROOT / "Dockerfile").read_text("utf-8"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
SETTINGS = {f"COMMONPLACE_{each.name.upper()}" for each in fields(Config)}


def of(name: str, stage: list[Instruction] = IMAGE) -> list[Instruction]:
    return [each for each in stage if each.name == name]


def test_nothing_is_run_by_root() -> None:
    (user,) = of("USER")
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user.text), "a number, which runAsNonRoot can check"
    names = [each.name for each in IMAGE]
    assert names.index("USER") < min(names.index("ENTRYPOINT"), names.index("CMD"), names.index("HEALTHCHECK"))
    (made,) = of("RUN")
    assert made.text == f"install -d -o {user.text.split(':')[0]} -g {user.text.split(':')[1]} -m 0700 /data"


def test_the_volume_is_the_data_folder_and_the_port_is_ours() -> None:
    environment = dict(each.text.split("=", 1) for each in of("ENV"))
    assert of("VOLUME")[0].words == [environment["COMMONPLACE_DATA"]] == ["/data"]
    assert of("EXPOSE")[0].text == str(Config(Path()).port)
    assert {name for name in environment if name.startswith("COMMONPLACE_")} <= SETTINGS
    assert of("ENTRYPOINT")[0].words + of("CMD")[0].words == ["commonplace", "serve"]
    assert of("STOPSIGNAL")[0].text == "SIGTERM"


def test_it_is_built_of_what_is_there_and_of_nothing_else() -> None:
    ignored = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    assert "*" in ignored
    kept = [line[1:] for line in ignored if line.startswith("!")]
    for each in (*of("COPY", BUILD), *of("COPY")):
        if "--from=" not in each.text:
            for source in each.words[:-1]:
                assert (ROOT / source).exists(), source
                assert any(fnmatch(source, pattern) or source.startswith(f"{pattern}/") for pattern in kept), source
    assert not of("ADD", BUILD)
    assert not of("ADD")
    (wanted,) = re.findall(r'"\.\[([\w,-]+)\]"', " ".join(each.text for each in of("RUN", BUILD)))
    assert set(wanted.split(",")) <= PROJECT["optional-dependencies"].keys()
    bases = {each.text.split()[0] for each in (*of("FROM", BUILD), *of("FROM"))}
    assert len(bases) == 1, "what is compiled by one must run on the other"
    version = re.fullmatch(r"python:(3\.\d+)-slim", bases.pop())
    assert version is not None
    assert f"Programming Language :: Python :: {version[1]}" in PROJECT["classifiers"]


def healthcheck(**settings: str) -> subprocess.CompletedProcess[str]:
    script = ROOT / "deploy" / "healthcheck.py"
    clean = {name: value for name, value in os.environ.items() if not name.startswith("COMMONPLACE_")}
    return subprocess.run(
        [sys.executable, str(script)], env={**clean, **settings}, capture_output=True, text=True, check=False
    )


def test_the_health_check_asks_the_server(tmp_path: Path) -> None:
    (check,) = of("HEALTHCHECK")
    assert check.text.endswith('CMD ["python", "/opt/commonplace/healthcheck.py"]')
    assert any(each.text == "deploy/healthcheck.py /opt/commonplace/healthcheck.py" for each in of("COPY"))
    with run_server(tmp_path / "plain") as server:
        port = str(server.port)
        assert healthcheck(COMMONPLACE_PORT=port).returncode == 0
    gone = healthcheck(COMMONPLACE_PORT=port)
    assert (gone.returncode, "nobody answers at" in gone.stderr) == (1, True)
    own = make_certificate(tmp_path)
    with run_server(tmp_path / "tls", "--tls-cert", str(own.cert), "--tls-key", str(own.key)) as server:
        assert healthcheck(COMMONPLACE_PORT=str(server.port), COMMONPLACE_TLS_CERT=str(own.cert)).returncode == 0
        assert healthcheck(COMMONPLACE_PORT=str(server.port)).returncode == 1
