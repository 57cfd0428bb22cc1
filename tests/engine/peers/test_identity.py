"""The installation's key: made once however many start at once, private, replaced without losing the old ones."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from commonplace.engine.peers.identity import KEY_FILE, Identity
from commonplace.wire import keys
from commonplace.wire.errors import Unavailable


def test_a_key_is_made_once_and_read_by_all(tmp_path: Path) -> None:
    first = Identity(tmp_path / "data").keypair()
    assert keys.verify(first.public, b"x", keys.sign(first.private, b"x"))
    assert Identity(tmp_path / "data").keypair() == first
    assert first.private not in repr(first)
    path = tmp_path / "data" / KEY_FILE
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert sorted(p.name[:9] for p in path.parent.iterdir()) == ["identity-", "identity."], "nothing half-made is left"


def test_the_file_is_private_whatever_the_umask(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        Identity(tmp_path).keypair()
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / KEY_FILE).stat().st_mode) == 0o600


def test_of_many_that_start_at_once_one_makes_the_key(tmp_path: Path) -> None:
    for n in range(20):
        folder = tmp_path / str(n)
        with ThreadPoolExecutor(8) as pool:
            found = set(pool.map(lambda _, folder=folder: Identity(folder).keypair().public, range(8)))
        assert len(found) == 1


@pytest.mark.process
def test_of_many_processes_one_makes_the_key(tmp_path: Path) -> None:
    code = "import sys; from pathlib import Path; from commonplace.engine.peers.identity import Identity\n"
    code += "sys.stdin.readline(); print(Identity(Path(sys.argv[1])).keypair().public)"
    running = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for _ in range(4)
    ]
    for process in running:
        assert process.stdin is not None
        process.stdin.write(b"\n")
        process.stdin.flush()
    assert len({process.communicate(timeout=30)[0] for process in running}) == 1


def test_rotation_keeps_old_keys_listed_and_reaches_those_that_run(tmp_path: Path) -> None:
    running, other = Identity(tmp_path), Identity(tmp_path)
    made = [running.keypair().public]
    for _ in range(3):
        made.append(other.rotate().public)
        assert running.keypair().public == made[-1], "noticed without a restart"
    assert len(set(made)) == 4
    assert set(running.retired()) == set(made[:-1])
    shown = running.to_wire()
    assert shown["public_key"] == made[-1]
    assert shown["fingerprint"] == keys.fingerprint(made[-1])
    assert {key["public_key"] for key in shown["retired"]} == set(made[:-1])
    assert stat.S_IMODE((tmp_path / KEY_FILE).stat().st_mode) == 0o600


def test_without_a_folder_it_lives_as_long_as_the_process() -> None:
    identity = Identity(None)
    first = identity.keypair()
    assert identity.keypair() is first
    assert identity.rotate() != first
    assert identity.retired() == []


@pytest.mark.parametrize("content", [b"", b"nonsense", b"\xff\xfe", keys.encode(b"x" * 31).encode()])
def test_a_damaged_key_is_left_alone_and_said_so(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / KEY_FILE
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(Unavailable, match="holds no key"):
        Identity(tmp_path).keypair()
    assert path.read_bytes() == content


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such permissions")
def test_a_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    Identity(tmp_path).keypair()
    (tmp_path / KEY_FILE).chmod(0o644)
    with pytest.raises(Unavailable, match="chmod 600"):
        Identity(tmp_path).keypair()


def test_a_folder_that_cannot_be_used_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(Unavailable, match="cannot use the key"):
        Identity(tmp_path / "file").keypair()
