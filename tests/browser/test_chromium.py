"""Finding Chromium, and saying what to do where there is none."""

from __future__ import annotations

import shutil
from typing import Any

import chromium
import pytest


def test_where_there_is_none_and_no_way_to_get_it_that_is_said(monkeypatch: Any) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert chromium.find_chromium() is None
    with pytest.raises(chromium.NoChromium, match="install Chromium and run this again"):
        chromium.chromium()
