"""Who this installation is to others: an Ed25519 key in a file of its own, made once and replaced on demand.

Every key's public half lies beside it as `identity-<digits>.pub` from before it is first used, so that what an old
key has signed can still be verified after any number of rotations.
"""

from __future__ import annotations

import os
import secrets
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from commonplace.wire import keys
from commonplace.wire.durable import sync_file
from commonplace.wire.errors import Fault, Unavailable

KEY_FILE = "identity.key"
_PUBLIC = "identity-{}.pub"


@dataclass(slots=True, frozen=True)
class Keypair:
    private: str
    public: str

    def __repr__(self) -> str:
        return f"Keypair({self.public!r})"  # the private half must not reach a log


class Identity:
    """The key in a folder, or, without a folder, one that lives as long as the process."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._held: Keypair | None = None
        self._seen: tuple[int, int] | None = None  # which file it was read from

    def keypair(self) -> Keypair:
        """The current one; another process may have replaced it a moment ago."""
        if self._folder is None:
            self._held = self._held or _made()
            return self._held
        path = self._folder / KEY_FILE
        try:
            seen = _stamp(path)
            if seen is None:
                self._publish(fresh := _made())
                _create(path, fresh.private)
                seen = _stamp(path)
            if self._held is None or seen != self._seen:
                self._held, self._seen = _read(path), seen
                self._publish(self._held)
        except OSError as error:
            raise Unavailable(f"cannot use the key in {path}: {error.strerror or error}") from None
        return self._held

    def retired(self) -> list[str]:
        """Public keys that signed before the current one."""
        current = self.keypair().public
        found = []
        for path in sorted(self._folder.glob(_PUBLIC.format("*"))) if self._folder is not None else ():
            with suppress(OSError, Fault):
                found.append(keys.check_public(path.read_text("ascii", "replace").strip()))
        return [key for key in dict.fromkeys(found) if key != current]

    def rotate(self) -> Keypair:
        """A new key from now on."""
        self.keypair()  # the old one is listed before it goes
        fresh = _made()
        if self._folder is None:
            self._held = fresh
            return fresh
        path = self._folder / KEY_FILE
        try:
            self._publish(fresh)
            os.replace(_written(path, fresh.private), path)
        except OSError as error:
            raise Unavailable(f"cannot replace the key in {path}: {error.strerror or error}") from None
        return self.keypair()

    def to_wire(self) -> dict[str, Any]:
        public = self.keypair().public
        retired = [{"public_key": key, "fingerprint": keys.fingerprint(key)} for key in self.retired()]
        known = {"public_key": public, "fingerprint": keys.fingerprint(public)}
        return {**known, "algorithm": keys.ED25519, "retired": retired}

    def _publish(self, pair: Keypair) -> None:
        assert self._folder is not None
        self._folder.mkdir(parents=True, exist_ok=True)
        digits = keys.fingerprint(pair.public).removeprefix("SHA256:").replace(":", "")
        path = self._folder / _PUBLIC.format(digits)
        if not path.exists():
            os.replace(_written(path, pair.public, 0o644), path)


def _made() -> Keypair:
    private = keys.new_private()
    return Keypair(private, keys.public_of(private))


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_mtime_ns


def _read(path: Path) -> Keypair:
    if sys.platform != "win32" and path.stat().st_mode & 0o077:
        raise Unavailable(f"others can read the key in {path}: `chmod 600 {path}`, then rotate it if they may have")
    try:
        private = path.read_text("ascii").strip()
        return Keypair(private, keys.public_of(private))
    except (Fault, UnicodeDecodeError):
        raise Unavailable(
            f"{path} holds no key; put it back from a copy, or move it away and a new one is made"
        ) from None


def _create(path: Path, private: str) -> None:
    """Of several processes that start at once one makes the key; nobody ever sees half of it."""
    whole = _written(path, private)
    try:
        os.link(whole, path)
    except FileExistsError:
        pass  # another was faster: theirs it is
    except OSError:  # a file system without links
        with suppress(FileExistsError):
            _write(path, private, 0o600)
    finally:
        os.unlink(whole)


def _written(path: Path, text: str, mode: int = 0o600) -> Path:
    """The text in a file beside `path`, whole and on the disk."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    _write(beside, text, mode)
    return beside


def _write(path: Path, text: str, mode: int) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(handle, "w", encoding="ascii") as file:
        file.write(text + "\n")
        file.flush()
        sync_file(file.fileno())
