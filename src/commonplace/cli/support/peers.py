"""What the commands share that talk to the agents of others."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from commonplace.cli.support.output import note
from commonplace.cli.support.progress import PATIENCE_SECONDS
from commonplace.wire.errors import Unauthenticated


@contextmanager
def request_to(url: str, token: str | None) -> Iterator[None]:
    """Says that an answer is being waited for, once it takes long and where someone is watching; and whose token is
    wanted: a server speaks to its owner, and a token made here would close our own server."""
    timer = threading.Timer(PATIENCE_SECONDS, lambda: note(f"waiting for {url} …"))
    timer.daemon = True
    if sys.stderr.isatty():
        timer.start()
    try:
        yield
    except Unauthenticated as refusal:
        how = "pass it with --token or COMMONPLACE_TOKEN"
        if token:
            raise Unauthenticated(
                f"{url} refuses this token ({refusal.message}): ask the owner of that server for another, and {how}"
            ) from None
        why = "asks for a token" if "Bearer" in refusal.message else f"refuses the request ({refusal.message})"
        raise Unauthenticated(f"{url} {why}: the owner of that server must give you a token; {how}") from None
    finally:
        timer.cancel()


def ambiguous_name(name: str) -> str | None:
    """Why a key bound to this name may stand in the way: it is the name of whoever was given none."""
    from commonplace.config import DEFAULT_AGENT, MrpConfig

    if name == DEFAULT_AGENT:
        whose, instead = "every agent that was given no name", "bind the name and key of its server instead"
    elif name == MrpConfig().name:
        whose, instead = "every server without `name` in [mrp] of its settings", "have its owner set one first"
    else:
        return None
    return f"{whose} is called {name}: once it is bound, all others called so are refused; better {instead}"
