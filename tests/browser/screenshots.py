"""Pictures of every page, light, dark and on a phone: `make screenshots`, into a folder to look at.

    python tests/browser/screenshots.py [FOLDER] [--docs]

With `--docs` those that the documentation shows are put into docs/images, too.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

TESTS = Path(__file__).parents[1]
if __name__ == "__main__":  # tests have these on their path already, in an order that matters to them
    sys.path[:0] = map(str, (TESTS / "browser", TESTS / "serve", TESTS))

from chromium import launched  # noqa: E402
from sample import fill, pages  # noqa: E402
from server_process import run_server, token  # noqa: E402

SHAPES = {
    "light": {"color_scheme": "light", "viewport": {"width": 1200, "height": 760}},
    "dark": {"color_scheme": "dark", "viewport": {"width": 1200, "height": 760}},
    "phone": {"color_scheme": "light", "viewport": {"width": 390, "height": 780}, "device_scale_factor": 2},
}

QUESTION = '{\n  "agent_id": "assistant",\n  "query": "what should I not cook for Alice?",\n  "k": 1\n}'
#: The pictures of docs/images, each with the page and the shape that it is of.
IN_DOCUMENTATION = {
    "api-page-light": "api-light", "page-graph-dark": "graph-dark", "page-health-light": "health-light",
    "page-inbox-phone": "inbox-phone", "page-policies-light": "policies-light", "page-review-light": "review-light",
    "page-run-light": "run-light",
}  # fmt: skip


def main(folder: Path, docs: bool) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as data, launched() as browser:
        # The first command says which embedder a store has: the one that people have, not that of tests.
        secret = token(Path(data), "--role", "admin", "--name", "alice", COMMONPLACE_EMBEDDER="encoder")
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
                page.goto(f"{server.url}/docs#recall")
                page.locator("#api[aria-busy=false]").wait_for()
                page.get_by_label("Token").fill(secret)
                page.locator("#recall textarea").fill(QUESTION)
                page.get_by_role("button", name="Send").click()
                page.locator("#recall .answer").wait_for()
                page.locator("#recall form").evaluate(
                    "form => { form.scrollIntoView(); scrollBy(0, -100); }"
                )  # below the head
                page.screenshot(path=folder / f"api-{shape}.png")
                context.close()
    if docs:
        for shown, taken in IN_DOCUMENTATION.items():
            shutil.copy(folder / f"{taken}.png", TESTS.parent / "docs" / "images" / f"{shown}.png")
    print(f"{len(list(folder.glob('*.png')))} pictures are in {folder}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path, nargs="?", default=Path("site/screenshots"))
    parser.add_argument("--docs", action="store_true")
    given = parser.parse_args()
    main(given.folder, given.docs)
