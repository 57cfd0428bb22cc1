"""The bar shows itself to people who wait, and to nobody else."""

from __future__ import annotations

import asyncio
import io

import pytest

from commonplace.cli.support import progress
from commonplace.cli.support.command import Session


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def impatient_screen(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal on which a bar is shown at once. No fixture: pytest puts its own stderr back before a test begins."""
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setattr(progress, "PATIENCE_SECONDS", 0)
    monkeypatch.setenv("TERM", "xterm")
    return screen


def test_whoever_waits_sees_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = impatient_screen(monkeypatch)
    with progress.ProgressBar("copying") as bar:
        assert bar._timer is not None
        bar._timer.join()
        bar(3, 4)
    assert "copying" in screen.getvalue()
    assert "75%" in screen.getvalue()


@pytest.mark.parametrize("stream", [Terminal(), io.StringIO()], ids=["quick", "piped"])
def test_nothing_is_shown_otherwise(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO) -> None:
    monkeypatch.setattr("sys.stderr", stream)
    with progress.ProgressBar("copying") as bar:
        bar(3, 4)
    assert stream.getvalue() == ""


def test_whatever_takes_long_shows_that_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = impatient_screen(monkeypatch)

    async def slow() -> str:
        while "working" not in screen.getvalue():
            await asyncio.sleep(0)
        return "done"

    with Session(None, None) as run:
        assert run(slow()) == "done"
        run._runner.close()


def test_a_bar_within_another_takes_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    impatient_screen(monkeypatch)
    with progress.ProgressBar("working") as outer:
        assert outer._timer is not None
        outer._timer.join()
        with progress.ProgressBar("copying") as inner:
            assert inner._timer is not None
            inner._timer.join()
            assert (outer._progress, outer._timer) == (None, None)
            assert inner._progress is not None
    assert progress._begun == []


def test_work_within_a_bar_that_knows_how_far_it_is_leaves_it_there(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = impatient_screen(monkeypatch)

    async def measured(bar: progress.ProgressBar) -> None:
        bar(1, 4)
        while "25%" not in screen.getvalue():
            await asyncio.sleep(0)

    with Session(None, None) as run, progress.ProgressBar("comparing") as bar:
        run(measured(bar))
        run._runner.close()
    assert "comparing" in screen.getvalue()
    assert "working" not in screen.getvalue()


@pytest.mark.parametrize("terminal", [True, False])
def test_work_without_an_end_has_no_bar(monkeypatch: pytest.MonkeyPatch, terminal: bool) -> None:
    monkeypatch.setattr("sys.stderr", Terminal() if terminal else io.StringIO())
    begun: list[int] = []

    async def watch() -> None:
        begun.append(len(progress._begun))

    with Session(None, None) as run:
        run(watch(), endless=True)
        run._runner.close()
    assert begun == [0]
