"""`commonplace update`."""

from __future__ import annotations

from typing import Annotated, Any

from commonplace.cli.support import options, values
from commonplace.cli.support.command import Answer, Commands, Session, option
from commonplace.cli.support.output import store_problems, waiting
from commonplace.wire.errors import ValidationError

commands = Commands()


@commands.add("update")
def update(
    run: Session,
    id: options.MemoryId,
    content: Annotated[str | None, option("--content TEXT", "The new text.")] = None,
    tag: Annotated[list[str] | None, option("--tag TAG", "The new tags, all of them; repeat it.")] = None,
    no_tags: Annotated[bool, option("--no-tags", "Take all tags away.")] = False,
    metadata: Annotated[
        list[str] | None, option("--metadata KEY=VALUE", "Set one metadata field; KEY=null removes it.")
    ] = None,
    metadata_json: Annotated[str | None, option("--metadata-json JSON", "Replace all the metadata.")] = None,
    confidence: options.Confidence = None,
    expires: options.Expires = None,
    no_expires: Annotated[bool, option("--no-expires", "Take its expiry away: it is kept for good.")] = False,
    share_with: Annotated[
        list[str] | None, option("--share-with NAME", "Who of others may be told it, all of them; `*` is anyone.")
    ] = None,
    no_share: Annotated[bool, option("--no-share", "Share it with nobody any more.")] = False,
    expected_version: Annotated[
        int | None, option("--expected-version N", "Refuse if it is no longer this version.")
    ] = None,
    approval: options.Approval = False,
    reasoning: options.Reasoning = None,
) -> Answer:
    """Change a memory; the version before is kept in its history.

    \b
    Example:
      commonplace update 1d2e3f --content "Alice is allergic to peanuts and kiwi"
      commonplace update 1d2e3f --metadata stars=5 --expected-version 2
      commonplace update 1d2e3f --no-expires
      commonplace update 1d2e3f --share-with Babel
    """
    if tag and no_tags:
        raise ValidationError("give --tag or --no-tags, not both", field="tags")
    if expires and no_expires:
        raise ValidationError("give --expires or --no-expires, not both", field="expires_at")
    if share_with and no_share:
        raise ValidationError("give --share-with or --no-share, not both", field="privacy_intent.share_with")
    changed: dict[str, Any] = {"content": content, "tags": [] if no_tags else tag or None, "confidence": confidence}
    changed["expires_at"] = values.future(expires, "--expires")
    changed["remove_expiry"] = no_expires or None
    changed["privacy_intent"] = {"share_with": share_with or []} if share_with or no_share else None
    if not metadata and metadata_json is None and all(value is None for value in changed.values()):
        raise ValidationError(
            "nothing to change: give --content, --tag, --no-tags, --metadata, --metadata-json, --confidence, "
            "--expires, --no-expires, --share-with or --no-share"
        )
    ref = run.id(id)
    if metadata_json is not None:
        changed["metadata"] = values.metadata(metadata, metadata_json)
    elif metadata:
        current = run(run.memory.get(ref))
        merged = {**current["metadata"], **values.metadata(metadata)}
        changed["metadata"] = {name: value for name, value in merged.items() if value is not None}
        expected_version = expected_version or current["version"]
    changed |= {"remove_expiry": no_expires, "approval_required": approval, "reasoning": reasoning}
    updated = run(run.memory.update(ref, expected_version=expected_version, **changed))
    if updated.get("pending_approval"):
        return Answer(updated, waiting(updated["review_id"], updated.get("approval_url")), run.warnings)
    told = [*run.warnings, *store_problems(updated)]
    return Answer(updated, f"updated {updated['id']} to version {updated['version']}", told)
