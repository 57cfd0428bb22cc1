"""The names that a shell offers for --agent, read from the embedded store beside whoever has it open.

A key was pressed: nothing is begun, brought up to date or waited for, and where there is nothing to offer, nothing is
said.
"""

from __future__ import annotations

import re
from pathlib import Path

from commonplace.cli.support.command import OPERATOR

#: Whoever may write may call an agent as they like, and a shell evaluates what it is offered: nothing that means
#: something to one.
_PLAIN = re.compile(r"\w[\w.@+-]*\Z")


def agent_names(data: Path | None) -> list[str]:
    try:
        return _read(data)
    except Exception:  # a shell shows in the middle of somebody's line whatever it is told
        return []


def _read(data: Path | None) -> list[str]:
    from commonplace import config as configuration
    from commonplace.stores.urls import database_file

    config = configuration.load(data=data)
    database = database_file(config.store_url)
    if database is None or not database.exists():
        return []
    from commonplace.engine import Redactor
    from commonplace.stores.sqlite.reads import peek_agent_names

    may_show = Redactor(config.redaction, config.data).is_name
    names = peek_agent_names(database, OPERATOR.tenant)
    return [name for name in names if _PLAIN.match(name) and may_show(name)]
