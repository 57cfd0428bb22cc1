"""A progress bar on stderr for what takes longer than two seconds, and only where someone is watching."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

PATIENCE_SECONDS = 2.0

#: The bars that are begun and not ended, the innermost last: only that one is shown, as two would share their lines.
_begun: list[ProgressBar] = []


def is_begun() -> bool:
    """Whether someone who watches is shown a bar, or will be."""
    return bool(_begun)


class ProgressBar:
    """Call it with (done, total); it may be called from any thread. Until it is, it moves without a measure.

    Bars are begun and ended by one thread, one within the other.
    """

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

    @property
    def percent(self) -> int:
        with self._lock:
            return min(100, 100 * self._done // self._total) if self._total else 0

    def __enter__(self) -> ProgressBar:
        if sys.stderr.isatty():
            if _begun:
                _begun[-1]._hide()
            _begun.append(self)
            self._timer = threading.Timer(PATIENCE_SECONDS, self._appear)
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self in _begun:
            _begun.remove(self)
        self._hide()

    def _hide(self) -> None:
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            if self._progress is not None:
                self._progress.stop()
            self._timer = self._progress = None

    def _appear(self) -> None:
        from rich.console import Console
        from rich.progress import Progress, SpinnerColumn, TimeElapsedColumn

        with self._lock:
            if self._timer is None:
                return
            # The spinner and the time move also while nothing is counted.
            columns = SpinnerColumn(), *Progress.get_default_columns()[:3], TimeElapsedColumn()
            self._progress = Progress(*columns, console=Console(file=sys.stderr), transient=True)
            self._task = self._progress.add_task(self._label, total=None)
            self._progress.start()
            self._update()

    def _update(self) -> None:
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, completed=self._done, total=self._total or None)
