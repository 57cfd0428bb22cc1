"""A real Chromium, driven by Playwright. Installed by the tests themselves where it is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from system_packages import require_program

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext
    from server_process import ServerProcess

FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
_PACKAGES = ("chromium", "fonts-dejavu-core")


def chromium() -> Path:
    """Where it is; installed where that is possible, else `NotInstalled`."""
    return require_program("chromium", "chromium-browser", "google-chrome", packages=_PACKAGES)


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
