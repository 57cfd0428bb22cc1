"""Pictures of every page, light, dark and on a phone: `make screenshots`, into a folder to look at."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

TESTS = Path(__file__).parents[1]
sys.path[:0] = map(str, (TESTS / "browser", TESTS / "serve", TESTS))

from chromium import launched  # noqa: E402
from sample import fill, pages  # noqa: E402
from server_process import run_server, token  # noqa: E402

SHAPES = {
    "light": {"color_scheme": "light", "viewport": {"width": 1200, "height": 760}},
    "dark": {"color_scheme": "dark", "viewport": {"width": 1200, "height": 760}},
    "phone": {"color_scheme": "light", "viewport": {"width": 390, "height": 780}, "device_scale_factor": 2},
}


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as data, launched() as browser:
        secret = token(Path(data), "--role", "admin", "--name", "alice")
        token(Path(data), "--role", "writer", "--name", "coder", "--agents", "coder", "--expires", "90d")
        with run_server(Path(data), COMMONPLACE_EMBEDDER="encoder") as server:
            shown = pages(fill(server, secret))
            for shape, options in SHAPES.items():
                context = browser.new_context(**options)  # type: ignore[arg-type]
                page = context.new_page()
                page.goto(f"{server.url}/ui/login")
                page.screenshot(path=folder / f"login-{shape}.png")
                page.get_by_label("Token").fill(secret)
                page.keyboard.press("Enter")
                page.wait_for_url("**/ui/inbox")
                for name, path in shown.items():
                    page.goto(server.url + path)
                    page.wait_for_load_state("networkidle")
                    page.screenshot(path=folder / f"{name}-{shape}.png")
                page.goto(f"{server.url}/docs#remember")
                page.locator("#api[aria-busy=false]").wait_for()
                page.get_by_label("Token").fill(secret)
                page.get_by_role("button", name="Send").click()
                page.locator("#remember .answer").wait_for()
                page.locator("#remember textarea").scroll_into_view_if_needed()
                page.screenshot(path=folder / f"api-{shape}.png")
                context.close()
    print(f"{len(list(folder.glob('*.png')))} pictures are in {folder}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "site/screenshots"))
