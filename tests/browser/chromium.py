"""A real Chromium, driven by Playwright. Installed by the tests themselves where it is missing."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext
    from server_process import ServerProcess

FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
_NAMES = ("chromium", "chromium-browser", "google-chrome")
_INSTALL = "apt-get install -y --no-install-recommends chromium fonts-dejavu-core"


class NoChromium(Exception):
    """Says what to do about it."""


def find_chromium() -> Path | None:
    return next((Path(found) for name in _NAMES if (found := shutil.which(name))), None)


def chromium() -> Path:
    """Where it is; installed from Debian's packages where that is possible."""
    if (found := find_chromium()) is not None:
        return found
    if shutil.which("apt-get") is None:
        raise NoChromium("no Chromium here, and no apt-get to install it with: install Chromium and run this again")
    done = subprocess.run(
        f"apt-get update -qq && {_INSTALL}", shell=True, capture_output=True, text=True, timeout=280, check=False
    )
    if (found := find_chromium()) is None:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise NoChromium(f"Chromium could not be installed with `{_INSTALL}`: {''.join(last)}")
    return found


@contextmanager
def launched(**options: Any) -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(chromium()), args=list(FLAGS), **options)
        try:
            yield browser
        finally:
            browser.close()


class Requests:
    """Everything that a browser asked for, and what its console said."""

    def __init__(self) -> None:
        self.urls: list[str] = []
        self.console: list[str] = []

    def watch(self, context: BrowserContext) -> None:
        context.on("request", lambda request: self.urls.append(request.url))
        context.on("console", lambda message: self.console.append(f"{message.type}: {message.text}"))

    def elsewhere(self, server: ServerProcess) -> list[str]:
        return [url for url in self.urls if not url.startswith((f"{server.url}/ui", "data:", "about:"))]
