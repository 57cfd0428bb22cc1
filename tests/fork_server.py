"""The program as a fork of a process that has imported it: tests start it hundreds of times, and importing takes longer
than what most of them ask of it.

Such a fork is a child of whoever started it, with the streams, the environment, the folder and the session that it was
started with; only its command line is that of the process it was forked from. The first of each command starts as it
does for users, and so does whatever asks for more than that: another program, Python's own variables, another user.
Where there is no `prctl`, all do.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
import importlib
import json
import os
import pkgutil
import runpy
import signal
import socket
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

PROGRAM = "commonplace.cli"
#: Not imported beforehand: it starts threads, which no fork has, or is for frameworks that are not here.
_NOT_PRELOADED = ("commonplace.embedders.", "commonplace.integrations.", "commonplace.judges.", "commonplace.testing")
#: What an interpreter reads as it starts.
_READ_AT_START = ("PYTHON", "LANG", "LC_", "LD_")
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER: whoever is orphaned among what this process started becomes its child
_fork_exec = subprocess._fork_exec  # type: ignore[attr-defined]
_lock = threading.Lock()
_commands: set[str] = set()  # those that were started once
_connection: socket.socket | None = None
_server: subprocess.Popen[bytes] | None = None
_settings: dict[str, str] = {}  # what the process that is forked has read as it started


def install() -> None:
    """From now on, wherever `subprocess` would start the program."""
    if sys.platform == "linux":
        subprocess._fork_exec = _fork_or_start  # type: ignore[attr-defined]
        subprocess._USE_POSIX_SPAWN = False  # which some Pythons prefer, and would not ask us


def _fork_or_start(*asked: Any) -> int:
    """In place of `_posixsubprocess.fork_exec`, which takes just these."""
    (arguments, programs, closes, kept, folder, given, stdin, _, _, stdout, _, stderr, *rest) = asked[:22]
    _, _, _, session, *special = rest
    command = [os.fsdecode(each) for each in arguments]
    environment = dict(os.environ) if given is None else dict(os.fsdecode(each).split("=", 1) for each in given)
    ordinary = closes and len(kept) == 1 and all(each in (None, -1) for each in special)
    ordinary = ordinary and [*programs] == [os.fsencode(sys.executable)] and _starts_alike(environment)
    if ordinary and command[:3] == [sys.executable, "-m", PROGRAM] and len(command) > 3:
        with _lock:
            if command[3] in _commands:
                streams = [own if other == -1 else other for own, other in enumerate((stdin, stdout, stderr))]
                where = os.path.abspath(os.fsdecode(folder or "."))
                return _fork(streams, command=command[3:], environment=environment, folder=where, session=session)
            _commands.add(command[3])
    return int(_fork_exec(*asked))


def _starts_alike(environment: Mapping[str, str]) -> bool:
    return _read_at_start(environment) == (_settings if _connection is not None else _read_at_start(os.environ))


def _read_at_start(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(_READ_AT_START)}


def _fork(streams: Sequence[int], **request: Any) -> int:
    global _connection, _settings
    if _connection is None:
        _connection, _settings = _start_server(), _read_at_start(os.environ)
    message = json.dumps(request).encode()
    try:
        with _adopting_orphans():
            socket.send_fds(_connection, [len(message).to_bytes(8, "big")], streams)
            _connection.sendall(message)
            if not (answer := _connection.recv(8)):
                raise ConnectionResetError("the process that the program is forked from has ended")
    except BaseException:  # also of a test that took too long: its answer must not be taken for the next one's
        _connection.close()
        _connection = None
        raise
    return int.from_bytes(answer, "big")


@contextlib.contextmanager
def _adopting_orphans() -> Iterator[None]:
    """Only as long as that: whoever is orphaned by a test goes where it goes for users."""
    prctl = ctypes.CDLL(None).prctl
    prctl(_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        prctl(_SUBREAPER, 0, 0, 0, 0)


def _start_server() -> socket.socket:
    global _server
    ours, theirs = socket.socketpair()
    with theirs:
        process = _server = subprocess.Popen(
            [sys.executable, __file__, str(theirs.fileno())], pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        )  # fmt: skip

    def stop() -> None:
        ours.close()
        process.wait()

    atexit.register(stop)
    return ours


# the process itself


def serve(connection: socket.socket) -> None:
    import_program()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is for whoever asks, who then ends this
    gc.freeze()  # what is shared with all forks need not be looked at, which would copy it
    while True:
        header, streams, _, _ = socket.recv_fds(connection, 8, 3)
        if not header:  # whoever asks has ended
            return
        request = json.loads(_receive(connection, int.from_bytes(header, "big")))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # threads beside a fork: those of linear algebra are idle
            number = _fork_orphan()
        if number is None:
            connection.close()
            become(streams, **request)
            return
        for stream in streams:
            os.close(stream)
        connection.sendall(number.to_bytes(8, "big"))


def import_program() -> None:
    import commonplace

    for module in pkgutil.walk_packages(commonplace.__path__, "commonplace.", onerror=lambda name: None):
        if not module.name.startswith(_NOT_PRELOADED) and not module.name.endswith("__main__"):
            with contextlib.suppress(ImportError):  # of an extra that is not installed
                importlib.import_module(module.name)


def _receive(connection: socket.socket, count: int) -> bytes:
    received = b""
    while len(received) < count and (part := connection.recv(count - len(received))):
        received += part
    return received


def _fork_orphan() -> int | None:
    """The number of a process whose parent has ended, so that it is the child of whoever adopts orphans; None in it."""
    number_out, number_in = os.pipe()
    adopted_out, adopted_in = os.pipe()  # nothing is written to it: it is closed when the parent has ended
    if (parent := os.fork()) == 0:
        if (number := os.fork()) == 0:
            os.close(adopted_in)
            # The program must not see its parent change: it takes that for the end of its client.
            os.read(adopted_out, 1)
            for each in (number_out, number_in, adopted_out):
                os.close(each)
            return None
        os.write(number_in, number.to_bytes(8, "big"))
        os._exit(0)
    os.close(number_in)  # so that a parent that could not fork is not waited for
    os.waitpid(parent, 0)
    answer = int.from_bytes(os.read(number_out, 8), "big")
    for each in (number_out, adopted_out, adopted_in):
        os.close(each)
    return answer


def become(streams: Sequence[int], command: list[str], environment: dict[str, str], folder: str, session: bool) -> None:
    """Be the program that was asked for, as if this process had just been started."""
    for number, (stream, name) in enumerate(zip(streams, ("stdin", "stdout", "stderr"), strict=True)):
        os.dup2(stream, number)
        os.close(stream)
        before = getattr(sys, name)
        buffering = 1 if number == 2 else -1  # by lines, so that nothing is lost of what a dying process says
        as_before = {"encoding": before.encoding, "errors": before.errors, "newline": "\n"}
        opened = open(number, "w" if number else "r", buffering, closefd=False, **as_before)  # noqa: SIM115
        setattr(sys, name, opened)
        setattr(sys, f"__{name}__", opened)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    if session:
        os.setsid()
    sys.path[0], sys.argv = folder, [PROGRAM, *command]
    runpy.run_module(PROGRAM, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
