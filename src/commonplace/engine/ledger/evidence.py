"""What was written down elsewhere of a ledger, signed heads and exported entries, against the ledger as it is now.

A chain shows that it is whole; only what lies outside its store shows that it is still the same one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from commonplace.engine.ledger import audit
from commonplace.engine.ledger.merkle import Frontier, leaf_hash
from commonplace.engine.ledger.tree_heads import TreeHead
from commonplace.stores.base import AuditEntry
from commonplace.wire import keys, strict_json
from commonplace.wire.errors import Fault, ValidationError
from commonplace.wire.times import iso
from commonplace.wire.words import plural

Document = dict[str, Any]
_HEAD = {f.name: str if f.type == "str" else int for f in fields(TreeHead)}
_MAX_HEAD_CHARS = 65_536
_WHAT = "a head as `commonplace audit head` gives it, or a line of an export"


def read_evidence(lines: Iterable[str], name: str) -> list[Document]:
    """One JSON document, or one to a line, as heads and exports are written; `name` is what a refusal calls it."""
    found: list[Document] = []
    rest = iter(lines)
    for number, text in enumerate(rest, 1):
        if not text.strip():
            continue
        try:
            document = strict_json.decode(text)
        except strict_json.InvalidJson as error:
            # a head that someone has pretty-printed
            if number == 1 and (whole := _whole(text, rest)) is not None:
                return [whole]
            if found and text.startswith("{"):  # torn by a power cut; the export went on with the same entry
                continue
            raise ValidationError(f"{name}, line {number} is no JSON: {error}", field="head") from None
        if not isinstance(document, dict):
            raise ValidationError(f"{name}, line {number} is no head and no entry", field="head")
        found.append(document)
    if not found:
        raise ValidationError(f"{name} is empty; `commonplace audit head --json` makes a head", field="head")
    return found


def _whole(first: str, rest: Iterable[str]) -> Document | None:
    text = first
    for line in rest:
        text += line
        if len(text) > _MAX_HEAD_CHARS:
            return None
    try:
        document = strict_json.decode(text)
    except strict_json.InvalidJson:
        return None
    return document if isinstance(document, dict) else None


class Evidence:
    """Fed the ledger's good entries in order, then finished; `problem` is what it does not agree with, and the first
    entry concerned where that can be told."""

    def __init__(self, tenant: str, documents: Iterable[Document], public_keys: Sequence[str]) -> None:
        self._keys = {keys.fingerprint(key): key for key in public_keys}
        self._heads: list[TreeHead] = []
        self._exported: dict[int, str] = {}
        self._frontier = Frontier()
        self._agreed: list[TreeHead] = []
        self.problem: tuple[str, int | None] | None = None
        for document in documents:
            self._take(tenant, document)
        self._heads.sort(key=lambda head: head.size)
        self._check_heads()

    @property
    def heads(self) -> int:
        return len(self._heads)

    def _take(self, tenant: str, document: Document) -> None:
        if "root" in document:
            head = _head(document)
            if head.tenant != tenant:
                raise ValidationError(f"this head is of the tenant {head.tenant!r:.80}, not of {tenant!r}")
            self._heads.append(head)
            if self.problem is None:
                self.problem = self._signature_problem(head)
        elif "n" in document:
            entry = audit.from_header(document)
            self._exported[entry.n] = entry.hash
            if self.problem is None and not audit.is_intact(entry):
                self.problem = f"entry {entry.n} of the export was changed", None
        else:
            raise ValidationError(f"this is not {_WHAT}: it has neither a root nor an n")

    def _signature_problem(self, head: TreeHead) -> tuple[str, None] | None:
        said = f"the head of {plural(head.size, 'entry')}"
        if head.key_id not in self._keys:
            known = ", ".join(self._keys)
            return f"{said} was signed with the key {head.key_id:.80}, which is not known here ({known})", None
        unsigned = {name: getattr(head, name) for name in _HEAD if name != "signature"}
        try:
            good = keys.verify(self._keys[head.key_id], keys.bytes_of(unsigned), head.signature)
        except Fault:
            good = False
        return None if good else (f"{said} was changed after it was signed: its signature does not fit", None)

    def feed(self, entries: Iterable[AuditEntry]) -> None:
        for entry in entries:
            if self.problem is not None:
                return
            exported = self._exported.pop(entry.n, entry.hash)
            if exported != entry.hash:
                self.problem = "it is not the one that was exported: the ledger was rewritten from here on", entry.n
                return
            if self._heads:
                self._frontier.append(leaf_hash(bytes.fromhex(entry.hash)))
                self._check_heads()

    def _check_heads(self) -> None:
        """Those of the size that the walk has come to."""
        while self.problem is None and self._heads and self._heads[0].size <= self._frontier.size:
            head = self._heads.pop(0)
            if self._frontier.root().hex() == head.root:
                self._agreed.append(head)
                continue
            # One that was signed later may be of the rewritten ledger, and agreeing with that tells nothing.
            agreed = [good.size for good in self._agreed if good.size < head.size and good.at <= head.at]
            first = max(agreed, default=0) + 1
            which = f"entry {first} is" if first == head.size else f"among entries {first} to {head.size} some are"
            said = f"{which} not what was signed at {iso(head.at)}: the ledger was rewritten"
            self.problem = said, first if first == head.size else None

    def finish(self, size: int) -> None:
        """The ledger ends with so many entries: evidence of more means that its end was cut off."""
        more = [head.size for head in self._heads] + list(self._exported)
        if self.problem is None and more:
            said = f"there were {plural(max(more), 'entry')} when this was signed or exported, and there are {size}"
            self.problem = f"{said}: the ledger was cut off", size + 1


def _head(document: Mapping[str, Any]) -> TreeHead:
    wrong = [name for name, kind in _HEAD.items() if type(document.get(name)) is not kind]
    if wrong or set(document) != set(_HEAD):
        raise ValidationError(f"this is not {_WHAT}: a head has exactly {', '.join(_HEAD)}")
    return TreeHead(**document)
