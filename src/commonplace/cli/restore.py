"""`commonplace restore`. Short, as one command is one file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from commonplace.cli.support import options
from commonplace.cli.support.command import WHOLE_STORE, Answer, Commands, Session, argument, option
from commonplace.cli.support.output import plural
from commonplace.cli.support.progress import ProgressBar
from commonplace.wire.errors import ValidationError

commands = Commands()


@commands.add("restore", existing=False, unused=WHOLE_STORE)
def restore(
    run: Session,
    backup: Annotated[Path, argument("BACKUP", "The file that `commonplace backup` made.")],
    force: Annotated[
        bool, option("--force", "Put it in the place of a store that is there, which is kept aside.")
    ] = False,
    dry_run: options.DryRun = False,
) -> Answer:
    """Check a backup and put it in the place of the store.

    \b
    Example:
      commonplace restore ~/commonplace-2026-03-01.db --dry-run
      commonplace restore ~/commonplace-2026-03-01.db --data ~/elsewhere
      commonplace restore ~/commonplace-2026-03-01.db --force
    """
    import asyncio

    from commonplace import config
    from commonplace.engine import restore_backup
    from commonplace.stores.urls import database_file

    configured = config.load(data=run.data)
    run.config_notes = configured.notes
    database = database_file(configured.store_url)
    if database is None:
        scheme = configured.store_url.partition("://")[0]
        raise ValidationError(
            f"a backup is restored to a file, and the store is {scheme}://…; name a folder with --data"
        )
    with ProgressBar("checking" if dry_run else "restoring"):
        done = asyncio.run(restore_backup(backup, database, replace_existing=force, dry_run=dry_run))
    held = f"{plural(done['memories'], 'memory')}, {plural(done['audit_entries'], 'entry')} of the ledger"
    if dry_run:
        what = "it would replace" if done["replaces"] else "it would make"
        if done["replaces"] and not force:
            what = f"with --force {what}"
        return Answer(done, f"the backup is whole ({held}); {what} {done['database']}; nothing was changed")
    remarks = [f"what was there is kept as {done['kept']} until the next erasure or compact"] if "kept" in done else []
    if configured.replica_urls:
        remarks.append(
            "the other stores have what was there before; `commonplace stores resync NAME` makes each equal, and with "
            "--yes deletes what was written after the backup, which only they have now"
        )
    return Answer(done, f"restored {done['database']} ({held})", remarks)
