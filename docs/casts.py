"""The casts of docs/casts, recorded from the commands themselves: `make casts`.

Each is an asciicast (v2, which asciinema plays) and the same as an SVG that moves by itself. What is typed is in
`CASTS`; what is answered comes from a real terminal. Times are made up, so that nobody waits for a model to load.
"""

from __future__ import annotations

import html
import json
import os
import pty
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "casts"
COLUMNS, ROWS = 88, 26
_LINE_HEIGHT, _CHAR_WIDTH, _MARGIN = 19, 8.43, 14
_TYPING, _THINKING, _READING = 0.04, 0.5, 2.2  # seconds: a character, an answer, until the next command

#: By name: what is typed, one command a line.
CASTS = {
    "first-minute": """
commonplace remember "Alice is allergic to peanuts" --user alice --tag food
commonplace remember "Bob deploys the atlas service on Mondays" --tag work
commonplace recall "what should I not cook for Alice?"
commonplace recall "what should I not cook for Alice?" -k 1 --explain
commonplace list --agent defualt
""",
    "review": """
commonplace remember "Alice may approve payments up to 500 euros" --approval --reasoning "said in the chat"
commonplace recall "who may approve payments?"
commonplace review list
commonplace review approve $(commonplace review list | cut -f1) --reviewer bob
commonplace recall "who may approve payments?"
commonplace audit verify
""",
}
_COLOURS = {31: "#ff8f80", 32: "#8fd694", 33: "#e6c46c", 34: "#8db8f5", 35: "#d7a3ee", 36: "#7fd1d8"}
_ESCAPE = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])")
#: From where rich hides the cursor to draw a bar to where it has wiped the bar away.
_BAR = re.compile(r"\x1b\[\?25l.*?\x1b\[\?25h(?:\r?\x1b\[1A\x1b\[2K)*", re.DOTALL)


@dataclass
class Session:
    """What was typed and answered, and when."""

    events: list[tuple[float, str]] = field(default_factory=list)
    now: float = 0.0

    def show(self, text: str, after: float) -> None:
        self.now += after
        self.events.append((round(self.now, 3), text))


def record(script: str) -> Session:
    session = Session()
    with tempfile.TemporaryDirectory() as folder:
        settings = {
            **os.environ,
            "COMMONPLACE_DATA": f"{folder}/memories",
            "TERM": "xterm-256color",
            "COLUMNS": str(COLUMNS),
        }
        settings |= {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "HOME": folder}
        for name in ("NO_COLOR", "COMMONPLACE_AGENT", "COMMONPLACE_STORE", "COMMONPLACE_STORES"):
            settings.pop(name, None)
        for typed in script.strip().splitlines():
            session.show("\x1b[32m$\x1b[0m ", 0.3)
            for character in typed:
                session.show(character, _TYPING)
            session.show("\r\n", 0.3)
            session.show(_answer(typed, settings), _THINKING)
            session.now += _READING
    return session


def _answer(typed: str, settings: dict[str, str]) -> str:
    """What a terminal is sent, without what only made someone wait."""
    ours, theirs = pty.openpty()
    running = subprocess.Popen(["bash", "-c", typed], stdin=theirs, stdout=theirs, stderr=theirs, env=settings)
    os.close(theirs)
    said = b""
    while True:
        try:
            chunk = os.read(ours, 65536)
        except OSError:  # how Linux says that the other end is closed
            break
        if not chunk:
            break
        said += chunk
    os.close(ours)
    if running.wait() != 0:
        raise SystemExit(f"{typed}\n{said.decode()}")
    return _BAR.sub("", said.decode())


def asciicast(session: Session) -> str:
    header = {"version": 2, "width": COLUMNS, "height": ROWS, "env": {"TERM": "xterm-256color", "SHELL": "/bin/bash"}}
    lines = [json.dumps(header), *(json.dumps([at, "o", text], ensure_ascii=False) for at, text in session.events)]
    return "\n".join(lines) + "\n"


def animation(session: Session, title: str) -> str:
    """An SVG that types line by line and scrolls; whoever wants no motion sees the end."""
    lines = [(at, part) for at, spans in _lines(session) for part in _wrapped(spans)]
    total = session.now + 3
    height = ROWS * _LINE_HEIGHT + 2 * _MARGIN
    width = round(COLUMNS * _CHAR_WIDTH + 2 * _MARGIN)
    body, moved = [], 0
    scrolled = {0.0: 0}  # after which share of the time by how much
    for number, (at, spans) in enumerate(lines):
        y = (number + 1) * _LINE_HEIGHT
        body.append(f'<text y="{y}" style="animation-delay:{at:.2f}s">{"".join(map(_span, spans))}</text>')
        if number >= ROWS:
            share = round(100 * at / total, 2)
            scrolled.setdefault(share, moved)  # of the lines of one answer the first: until then it stands still
            moved = (number - ROWS + 1) * _LINE_HEIGHT
            scrolled[round(min(share + 0.2, 100), 2)] = moved
    scrolled[100.0] = moved
    steps = [f"{share}%{{transform:translateY({-by}px)}}" for share, by in sorted(scrolled.items())]
    style = (
        "text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#e4e6eb;"
        "white-space:pre;opacity:0;animation:show .01s forwards}"
        f"@keyframes show{{to{{opacity:1}}}}@keyframes scroll{{{''.join(steps)}}}"
        f"#s{{animation:scroll {total:.2f}s linear forwards}}"
        "@media (prefers-reduced-motion:reduce){text{animation:none;opacity:1}#s{animation:none;"
        f"transform:translateY({-moved}px)}}}}"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="{html.escape(title)}"><style>{style}</style>'
        f'<clipPath id="c"><rect x="0" y="0" width="{width}" height="{height - _MARGIN}"/></clipPath>'
        f'<rect width="{width}" height="{height}" rx="8" fill="#1b1e26"/>'
        f'<g clip-path="url(#c)"><g transform="translate({_MARGIN},{_MARGIN - 4})">'
        f'<g id="s">{"".join(body)}</g></g></g></svg>\n'
    )


Span = tuple[str, str, bool, bool]  # text, colour, bold, dim


def _lines(session: Session) -> list[tuple[float, list[Span]]]:
    """Each line with when it was begun; colours are the only escapes that our answers have."""
    found: list[tuple[float, list[Span]]] = []
    spans: list[Span] = []
    colour, bold, dim = "", False, False
    begun = 0.0
    for at, text in session.events:
        place = 0
        for escape in [*_ESCAPE.finditer(text), None]:
            part = text[place : escape.start() if escape else len(text)].replace("\r", "")
            for number, piece in enumerate(part.split("\n")):
                if number:
                    found.append((begun, spans))
                    spans = []
                if piece:
                    begun = begun if spans else at
                    spans.append((piece, colour, bold, dim))
            if escape is None:
                break
            place = escape.end()
            if escape[2] == "m":
                for code in map(int, filter(None, (escape[1] or "0").split(";"))):
                    colour = "" if code in (0, 39) else _COLOURS.get(code, colour)
                    bold, dim = (False, False) if code in (0, 22) else (bold or code == 1, dim or code == 2)
    return [*found, (begun, spans)] if spans else found


def _wrapped(spans: list[Span]) -> list[list[Span]]:
    """As a terminal breaks a line that is wider than it is."""
    made: list[list[Span]] = [[]]
    room = COLUMNS
    for text, *style in spans:
        while text:
            if not room:
                made.append([])
                room = COLUMNS
            part, text = text[:room], text[room:]
            made[-1].append((part, *style))
            room -= len(part)
    return made


def _span(span: Span) -> str:
    text, colour, bold, dim = span
    style = f' fill="{colour}"' if colour else ' fill-opacity=".6"' if dim else ""
    style += ' font-weight="bold"' if bold else ""
    shown = html.escape(text)
    return f"<tspan{style}>{shown}</tspan>" if style else shown


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, script in CASTS.items():
        session = record(script)
        (FOLDER / f"{name}.cast").write_text(asciicast(session), "utf-8")
        (FOLDER / f"{name}.svg").write_text(animation(session, name.replace("-", " ")), "utf-8")
        print(f"{name}: {session.now:.0f} s, {(FOLDER / f'{name}.svg').stat().st_size:,} bytes")
