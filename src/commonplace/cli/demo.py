"""`commonplace demo`: a tour in which every command shown is run, and every answer is real."""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from commonplace.cli import INTERRUPTED, main
from commonplace.cli.support.command import Answer, Commands, Session, option
from commonplace.cli.support.output import heading, line, moment, note, size

commands = Commands()

AGENT = "demo"

IN_PYTHON = """\
from commonplace import SyncMemory

with SyncMemory() as memory:
    memory.remember("Bob deploys the atlas service on Fridays", metadata={"project": "atlas", "tags": ["work"]})
    for hit in memory.recall("when does Bob deploy?", k=1).results:
        print(hit.content)
"""

KILLED = """\
import os, signal
from commonplace import SyncMemory

memory = SyncMemory()
print("acknowledged:", memory.remember("The spare key is under the blue flowerpot").id, flush=True)
os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))  # no goodbye: kill -9
"""


@commands.add("demo", agent="Whose memory the tour is about [`demo`].")
def demo(
    run: Session, pause: Annotated[bool, option("--pause", "Wait for Enter between the steps.")] = False
) -> Answer:
    """Take a two-minute tour in a fresh folder.

    \b
    Example:
      commonplace demo
      commonplace demo --pause --data ./demo-memory
    """
    fresh = Path(tempfile.mkdtemp(prefix="commonplace-demo-")) if run.data is None else run.data
    folder = fresh.expanduser().absolute()
    tour = _Tour(folder, run.agent or AGENT, pause and not run.as_json and sys.stdin.isatty(), run.as_json)
    before = dict(os.environ)
    os.environ |= {"COMMONPLACE_DATA": str(folder), "COMMONPLACE_AGENT": tour.agent}
    os.environ.pop("COMMONPLACE_STORE", None)
    os.environ.pop("COMMONPLACE_STORES", None)
    try:
        _walk(tour)
    finally:
        os.environ.clear()
        os.environ |= before
    files = sorted((str(path), path.stat().st_size) for path in folder.rglob("*") if path.is_file())

    def show() -> None:
        tour.say("That is all. What the tour made:")
        for path, count in files:
            line(f"  {path}  {size(count)}")
        line(f"\nKeep using it:  {tour.settings}")
        line(f"Delete it:      rm -r {shlex.quote(str(folder))}")

    document = {"data": str(folder), "agent": tour.agent, "steps": tour.steps}
    made = [{"path": path, "bytes": count} for path, count in files]
    return Answer({**document, "files": made}, show, exit_code=tour.failed)


def _walk(tour: _Tour) -> None:
    run, say, find = tour.run, tour.say, tour.find
    say(f"Commonplace keeps what agents learn. This tour lives in {tour.folder}, apart from your own memories:")
    tour.show(tour.settings)

    say("1. Remember. Text is kept exactly as given, with whatever you know about it.")
    run("remember", "Alice is allergic to peanuts", "--user", "alice", "--tag", "food")
    run("remember", "Alice moved to Lisbon in March", "--user", "alice", "--type", "episodic")
    run("remember", "Bob thinks the printer is haunted", "--user", "bob", "--confidence", "0.3")
    if why := tour.recall_note():
        say(f"({why}. Everything below works all the same.)")

    say("2. Recall, in your own words or with conditions.")
    run("recall", "what is Alice allergic to?", "-k", "2")
    run("recall", "Alice", "--types", "episodic", "--where", "user_id=alice")

    say("3. The same from Python.")
    tour.python(IN_PYTHON, "python")
    run("list", "--where", "project=atlas")

    say("4. Things change; nothing is lost. Update, look at the history, ask what was known before.")
    allergy = find("peanuts")
    before = moment(allergy["updated_at"])
    run("update", allergy["id"], "--content", "Alice is allergic to peanuts and kiwi")
    run("history", allergy["id"])
    run("recall", "what is Alice allergic to?", "-k", "1", "--as-of", before)

    say("5. Two memories that say the same become one. First see what would happen.")
    run("remember", "Peanuts make Alice ill", "--user", "alice", "--tag", "food")
    again = find("Peanuts make")
    run("merge", allergy["id"], again["id"], "--strategy", "merge_content", "--dry-run")
    run("merge", allergy["id"], again["id"], "--strategy", "merge_content")

    say("6. Forget what is stale or doubtful; every destructive command has a --dry-run.")
    run("expire", "--confidence-below", "0.5", "--dry-run")
    run("forget", "--where", "user_id=bob", "--dry-run")
    run("forget", "--where", "user_id=bob", "--reason", "printers are not haunted", "--yes")

    say("7. Some things a person should see first. Staged, invisible, then approved.")
    run("remember", "Alice may approve payments up to 500 euros", "--tag", "payments", "--approval")
    run("list", "--tag", "payments")
    run("review", "list")
    run("review", "approve", tour.waiting_review(), "--reviewer", "bob")
    run("list", "--tag", "payments")

    say("8. An acknowledged memory survives anything. This program is killed right after its answer:")
    tour.python(KILLED, "killed", apart=True)
    run("recall", "where is the spare key?", "-k", "1")

    say("9. Everything above is in a ledger that shows when anybody changes it.")
    run("audit", "list", "--operation", "forget")
    run("audit", "verify")
    run("status")


class _Tour:
    def __init__(self, folder: Path, agent: str, pause: bool, quiet: bool) -> None:
        self.folder, self.agent = folder, agent
        self.settings = f"export COMMONPLACE_DATA={shlex.quote(str(folder))} COMMONPLACE_AGENT={agent}"
        self._pause, self._quiet = pause, quiet
        self.steps: list[dict[str, Any]] = []
        self.failed = 0

    def say(self, text: str) -> None:
        if self._quiet:
            return
        if self._pause and self.steps:
            note("— Enter goes on —")
            sys.stdin.readline()
        line()
        heading(text)

    def show(self, typed: str) -> None:
        if not self._quiet:
            line(f"\n$ {typed}")

    def run(self, *args: str) -> None:
        """One command of ours, by its own front door."""
        typed = shlex.join(["commonplace", *args])
        self.show(typed)
        with self._captured() as said:
            code = main(args)
        if code == INTERRUPTED:  # the tour is what was meant, not this step of it
            raise KeyboardInterrupt
        self._step(typed, code, said.getvalue())

    def python(self, program: str, name: str, *, apart: bool = False) -> None:
        """The program shown, run as it is: here, or in a process of its own."""
        self.show(f"python - <<'end'\n{program}end")
        with self._captured() as said:
            if apart:
                done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
                print(done.stdout, end="")
                code = 0 if done.stdout.startswith("acknowledged") else 2
            else:
                exec(compile(program, f"<{name}>", "exec"), {})
                code = 0
        self._step(name, code, said.getvalue())

    def find(self, words: str) -> dict[str, Any]:
        with Session(self.folder, self.agent) as run:
            page = run(run.memory.list(limit=1000))
        return next(m for m in page["memories"] if words in m["content"])

    def waiting_review(self) -> str:
        with Session(self.folder, self.agent) as run:
            reviews = run(run.memory.reviews())
        return str(next(r["id"] for r in reversed(reviews) if r["agent_id"] == self.agent))

    def recall_note(self) -> str | None:
        """Why recall is by keywords only here, if it is."""
        with Session(self.folder, self.agent) as run:
            return run(run.memory.recall("Alice", k=1)).note

    @contextlib.contextmanager
    def _captured(self) -> Iterator[io.StringIO]:
        said = io.StringIO()
        out, err = (said, io.StringIO()) if self._quiet else (sys.stdout, sys.stderr)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            yield said

    def _step(self, typed: str, code: int, output: str) -> None:
        self.failed = max(self.failed, code)
        self.steps.append({"command": typed, "exit_code": code} | ({"output": output} if self._quiet else {}))
