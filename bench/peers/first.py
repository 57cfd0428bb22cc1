"""A fresh process of one system: SYSTEM FOLDER DIMENSION recall QUESTION, or … remember COUNT VECTORS.

`recall` opens what is there and asks once, in words; it prints when that was answered, on the clock that all processes
of the machine share, and what the process uses then. `remember` keeps COUNT memories with the vectors of that file,
so that what it makes the disk do can be counted from outside.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from bench.peers.processes import cpu_seconds, resident_bytes
from bench.peers.systems import adapter
from bench.peers.systems.base import AGENT, Row


class LazyEmbedder:
    """The embedder that Commonplace has here, loaded when a text is first embedded."""

    _embed: Any = None

    def __call__(self, text: str) -> Any:
        if self._embed is None:
            from commonplace.embedders.registry import open_embedder

            self._embed = open_embedder(os.environ["COMMONPLACE_EMBEDDER"])
        return self._embed.embed([text])[0]


def main(name: str, folder: str, dimension: str, what: str, *more: str) -> None:
    said = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # some systems print
    system = adapter(name)
    system.open(Path(folder), int(dimension), LazyEmbedder())
    pids = system.pids()  # where the work is done elsewhere, this process is only its client and does not count
    answer: dict[str, Any] = {}
    if what == "recall":
        found = system.recall(more[0], None, AGENT, None, 5)
        answer = {
            "spawned": getattr(system, "spawned", None),
            "answered": time.monotonic(),
            "cpu": cpu_seconds(pids) if pids else time.process_time(),
            "resident": resident_bytes(pids or [os.getpid()]),
            "hits": len(found),
        }
    else:
        import numpy as np

        vectors = np.load(more[1])
        for number in range(int(more[0])):
            system.remember(Row(f"n{number}", f"memory number {number} of a few", vectors[number]))
        system.settle()
    system.close()
    print(json.dumps(answer), file=said, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
