"""Talking with a child process that holds one system."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.peers.environment import ROOT, Environment


class Failed(Exception):
    """The system could not do it; the sentence goes into its row."""


@dataclass(slots=True, frozen=True)
class Kept:
    """Where the texts and their vectors lie, and how many texts are real."""

    folder: Path
    texts: int


class Talk:
    """One child, until it is closed or has failed."""

    def __init__(self, environment: Environment, system: str, material: Kept, log: Path) -> None:
        self.system = system
        self._log = log.open("ab")
        self._process = subprocess.Popen(
            [
                environment.interpreter(system),
                "-m",
                "bench.peers.child",
                system,
                str(material.folder),
                str(material.texts),
            ],
            cwd=ROOT,
            env=environment.variables(system),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,  # what is read ahead would be waited for in vain
            stderr=self._log,
            start_new_session=True,
        )

    def ask(
        self, do: str, *, seconds: float = 180, progress: Callable[[int], None] | None = None, **arguments: Any
    ) -> dict[str, Any]:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"do": do, **arguments}).encode() + b"\n")
            self._process.stdin.flush()
        except (OSError, ValueError):  # closed by it, or by us
            raise Failed(f"{do}: its process is gone") from None
        until = time.monotonic() + seconds
        while "progress" in (answer := self._line(do, until - time.monotonic(), seconds)):
            if progress:
                progress(answer["progress"])
        if "error" in answer:
            raise Failed(f"{do}: {answer['error']}")
        return answer

    def _line(self, do: str, left: float, seconds: float) -> dict[str, Any]:
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as waiting:
            waiting.register(self._process.stdout, selectors.EVENT_READ)
            if not waiting.select(max(left, 0)):
                raise Failed(f"{do}: no answer within {seconds:.0f} s")
        line = self._process.stdout.readline()
        if not line:
            raise Failed(f"{do}: its process ended with {self._process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def end(self) -> None:
        """Servers it has spawned see their input close; one that does not leave is ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(Failed):
            self.ask("close", seconds=60)
        with suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)  # with the server it may have spawned
            self._process.wait()
        self._process.stdout.close()
        self._log.close()
