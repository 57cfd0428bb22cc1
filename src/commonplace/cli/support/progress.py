"""A progress bar on stderr for what takes longer than two seconds, and only where someone is watching."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

PATIENCE_SECONDS = 2.0


class ProgressBar:
    """Call it with (done, total); it may be called from any thread."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._lock = threading.Lock()
        self._done, self._total = 0, 0
        self._progress: Progress | None = None
        self._task: TaskID | None = None
        self._timer: threading.Timer | None = None

    def __call__(self, done: int, total: int) -> None:
        with self._lock:
            self._done, self._total = done, total
            self._update()

    def __enter__(self) -> ProgressBar:
        if sys.stderr.isatty():
            self._timer = threading.Timer(PATIENCE_SECONDS, self._appear)
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
        with self._lock:
            if self._progress is not None:
                self._progress.stop()
            self._timer = None

    def _appear(self) -> None:
        from rich.console import Console
        from rich.progress import Progress

        with self._lock:
            if self._timer is None:
                return
            self._progress = Progress(console=Console(file=sys.stderr), transient=True)
            self._task = self._progress.add_task(self._label, total=None)
            self._progress.start()
            self._update()

    def _update(self) -> None:
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, completed=self._done, total=self._total or None)
