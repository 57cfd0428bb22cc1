"""The bar shows itself to people who wait, and to nobody else."""

from __future__ import annotations

import io

import pytest

from commonplace.cli.support import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_whoever_waits_sees_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setattr(progress, "PATIENCE_SECONDS", 0)
    monkeypatch.setenv("TERM", "xterm")
    with progress.ProgressBar("copying") as bar:
        assert bar._timer is not None
        bar._timer.join()
        bar(3, 4)
    assert "copying" in screen.getvalue()
    assert "75%" in screen.getvalue()


@pytest.mark.parametrize("screen", [Terminal(), io.StringIO()], ids=["quick", "piped"])
def test_nothing_is_shown_otherwise(monkeypatch: pytest.MonkeyPatch, screen: io.StringIO) -> None:
    monkeypatch.setattr("sys.stderr", screen)
    with progress.ProgressBar("copying") as bar:
        bar(3, 4)
    assert screen.getvalue() == ""
