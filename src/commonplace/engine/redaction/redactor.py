"""What happens to secrets in what is written: replaced, refused, or left alone, as the operator has chosen."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from commonplace.config import RedactionConfig
from commonplace.engine.redaction import registered_secrets
from commonplace.engine.redaction.registered_secrets import Secrets
from commonplace.engine.types import Draft
from commonplace.wire.errors import Fault, SecretLeakage
from commonplace.wire.record import Memory, Principal, check_content_size
from commonplace.wire.shown_urls import shown_variable

log = logging.getLogger("commonplace.engine")
_MAX_READ, _MAX_SHOWN = 20_000, 10_000  # characters of a refusal

Record = TypeVar("Record", Draft, Memory)
Labels = list[str]

_TEXTS = ("title", "entity_name", "source", "speaker")
_DOCUMENTS = ("tags", "metadata", "provenance")
_MIN_NUMBER = 100_000  # that is a password where it is called one
_NAME_KEYS, _VALUE_KEY = ("name", "key"), "value"
_MAX_NAMES = 4096  # known to hold no secret
_LARGE = 2_000  # characters; searching more than that is done off the event loop
#: What others look a memory up by: another spelling would make it another one, so a secret there is refused.
_NAMES = ("agent_id", "user_id", "project", "session_id", "kind", "aliases", "supersedes", "privacy")


class Redactor:
    def __init__(self, config: RedactionConfig | None = None, folder: Path | None = None) -> None:
        config = config or RedactionConfig()
        self.mode = config.mode
        self._brackets = "<>" if config.marker == "angle" else "[]"
        pairs, self.unset = registered_secrets.from_environment(config.secrets_env)
        if config.secrets_file:
            pairs += registered_secrets.from_file((folder or Path()) / Path(config.secrets_file).expanduser())
        self.secrets = Secrets(pairs)
        self._clean_names: set[str] = set()
        if self.unset and self.active:
            names = ", ".join(map(shown_variable, self.unset))
            log.warning("secrets_env names %s, not set here: nothing is looked for there", names)

    @property
    def active(self) -> bool:
        return self.mode != "off"

    def marker(self, label: str) -> str:
        return f"{self._brackets[0]}REDACTED:{label}{self._brackets[1]}"

    # what it would be: pure

    def text(self, text: str, extra: Secrets | None = None) -> tuple[str, Labels]:
        """The text without secrets, and the labels of those that were in it; `extra` are known to the caller alone."""
        if not self.active:
            return text, []
        from commonplace.engine.redaction import scanner  # by the first write, not at every start

        return scanner.redact(text, self.marker, self._secrets_in_force(extra))

    def document(self, value: Any, extra: Secrets | None = None) -> tuple[Any, Labels]:
        """As `text`, for every string in a JSON document, keys too; the document itself when nothing changes."""
        labels: Labels = []
        if self.active and value and self._suspicious("\n".join(strings(value)), extra):
            value = self._walk(value, extra, labels)
        return value, list(dict.fromkeys(labels))

    def holds_secret(self, value: Any, extra: Secrets | None = None) -> bool:
        """Whether a text or a document holds anything that would be replaced."""
        return bool((self.text(value, extra) if isinstance(value, str) else self.document(value, extra))[1])

    # what is done: replaced, or refused by a fault that names labels and fields and nothing else

    def redact_text(self, text: str, field: str, extra: Secrets | None = None) -> str:
        clean, labels = self.text(text, extra)
        self._refuse_if_rejecting(labels, [field])
        return clean

    def redact_document(self, value: Any, field: str, extra: Secrets | None = None) -> Any:
        clean, labels = self.document(value, extra)
        self._refuse_if_rejecting(labels, [field])
        return clean

    def redact_statement(self, subject: str, predicate: str, object: str) -> str:
        """The object of a statement that is kept: what its predicate calls a password is one."""
        from commonplace.engine.redaction import scanner

        label = scanner.stated_secret(subject, predicate, object) if self.active else None
        self._refuse_if_rejecting([label] if label else [], ["object"])
        return self.marker(label) if label else object

    def labels_in_statement(self, subject: str, predicate: str, object: str, provenance: str | None) -> Labels:
        """The labels of what is replaced in a statement that is kept."""
        from commonplace.engine.redaction import scanner

        clean, labels = list[str](), Labels()
        for text in (subject, predicate, object, provenance or ""):
            kept, found = self.text(text)
            clean.append(kept)
            labels += found
        stated = scanner.stated_secret(*clean[:3]) if self.active else None
        return list(dict.fromkeys([*labels, *([stated] if stated else [])]))

    def redact_record(
        self, record: Record, extra: Secrets | None = None, before: Memory | None = None
    ) -> tuple[Record, Labels]:
        """A draft or a version as it may be kept. `before` is the version whose names are kept as they were."""
        return self._redact_record(record, "\n".join(_other_texts(record)), extra, before)

    def _redact_record(
        self, record: Record, others: str, extra: Secrets | None, before: Memory | None
    ) -> tuple[Record, Labels]:
        """`others` is every text of it but the content: one look at them together, since what is in none of the parts
        is seldom in their sum."""
        if not self.active:
            return record, []
        check_content_size(record.content)
        changes: dict[str, Any] = {}
        content, labels = self.text(record.content, extra)
        if labels:
            changes["content"] = content
        if self._suspicious(others, extra):
            self._check_names(record, extra, before)
            for name in (*_TEXTS, *_DOCUMENTS):
                value = getattr(record, name)
                if not value:
                    continue
                clean, found = self.text(value, extra) if isinstance(value, str) else self.document(value, extra)
                if found:
                    changes[name] = clean
                    labels += found
        self._refuse_if_rejecting(labels, list(changes))
        if not changes:
            return record, []
        if isinstance(record, Draft):
            changes["embedding"] = None  # it was made of the text as it was
        return replace(record, **changes), list(dict.fromkeys(labels))

    async def redact_record_async(
        self, record: Record, extra: Secrets | None = None, before: Memory | None = None
    ) -> tuple[Record, Labels]:
        """As `redact_record`, off the event loop where there is much to search: megabytes can take seconds."""
        others = "\n".join(_other_texts(record))
        if len(record.content) + len(others) <= _LARGE:
            return self._redact_record(record, others, extra, before)
        return await asyncio.to_thread(self._redact_record, record, others, extra, before)

    def check_name(self, name: str, field: str, extra: Secrets | None = None) -> None:
        """Refuses a name that holds a secret: it cannot be replaced without naming something else."""
        if labels := self._labels_in_name(name, extra):
            sentence = f"{field} holds a secret ({', '.join(labels)}), and a name cannot be replaced; choose another"
            raise SecretLeakage(sentence, labels=labels, fields=[field])

    def is_name(self, name: str) -> bool:
        """Whether it may be used, and so shown, as a name."""
        return not self._labels_in_name(name)

    def _labels_in_name(self, name: str, extra: Secrets | None = None) -> Labels:
        if not self.active or (extra is None and name in self._clean_names):
            return []
        from commonplace.engine.redaction import scanner

        labels = scanner.in_name(name, self._secrets_in_force(extra))
        if not labels and extra is None:
            if len(self._clean_names) >= _MAX_NAMES:
                self._clean_names.clear()
            self._clean_names.add(name)  # the same few names come with every call
        return labels

    def redact_fault(self, fault: Fault, who: Principal | None) -> None:
        """A refusal repeats what it refuses, and a request that is wrong has been through no other check. Where the
        store is, and who logs in there, is for operators; `who` is None where nobody knows who asks."""
        if fault.public is not None and not (who is not None and who.is_operator):
            log.warning("%s", fault.message)  # which is said to nobody now
            fault.message = fault.message_for(is_operator=False)
            fault.summary, fault.hint, fault.details = fault.public, fault.public_hint, {}
        fault.message, fault.summary = self.shown(fault.message), self.shown(fault.summary)
        short = {name: self.shown(each) if isinstance(each, str) else each for name, each in fault.details.items()}
        fault.details = self.document(short)[0]
        fault.args = (fault.message,)

    def shown(self, text: str, most: int = _MAX_SHOWN) -> str:
        """A text that is repeated to whoever sent it. Of a long one only the beginning is looked at, since megabytes
        take seconds, and less than that is shown: half a secret looks like none."""
        clean = self.text(text[:_MAX_READ])[0]
        if len(text) > _MAX_READ:  # markers are short, so that the end of what was looked at may be near
            most = min(most, max(0, len(clean) - _MAX_SHOWN))
        return clean if len(text) <= _MAX_READ and len(clean) <= most else f"{clean[:most]}…"

    def _check_names(self, record: Draft | Memory, extra: Secrets | None, before: Memory | None) -> None:
        for field in _NAMES:
            value = getattr(record, field)
            if value and (before is None or getattr(before, field) != value):
                for name in strings(value):
                    self.check_name(name, field, extra)

    def _refuse_if_rejecting(self, labels: Labels, fields: list[str]) -> None:
        if labels and self.mode == "reject":
            labels = list(dict.fromkeys(labels))
            found = f"{' and '.join(fields)} must not hold a secret, and found was: {', '.join(labels)}"
            raise SecretLeakage(f"{found}; nothing was kept. Leave it out and try again", labels=labels, fields=fields)

    def _secrets_in_force(self, extra: Secrets | None) -> tuple[Secrets, ...]:
        return (self.secrets,) if extra is None else (extra, self.secrets)

    def _suspicious(self, texts: str, extra: Secrets | None) -> bool:
        from commonplace.engine.redaction import scanner

        return scanner.suspicious(texts, self._secrets_in_force(extra))

    def _walk(self, value: Any, extra: Secrets | None, labels: Labels) -> Any:
        if isinstance(value, str):
            clean, found = self.text(value, extra)
            labels += found
            return clean
        if isinstance(value, dict):
            return self._walk_object(value, extra, labels)
        if isinstance(value, (list, tuple)):
            return [self._walk(item, extra, labels) for item in value]
        return value

    def _walk_object(self, document: dict[Any, Any], extra: Secrets | None, labels: Labels) -> dict[Any, Any]:
        made: dict[Any, Any] = {}
        alike: dict[Any, int] = {}
        for key, value in document.items():
            spelled = kept = self._walk(key, extra, labels)
            while kept in made:  # two secrets of one kind were keys: neither value may be lost
                alike[spelled] = alike.get(spelled, 1) + 1
                kept = f"{spelled} ({alike[spelled]})"
            made[kept] = self._walk_named(key, value, extra, labels)
        # {"name": "DB_PASSWORD", "value": …}, as lists of settings have it.
        named = next((made[key] for key in _NAME_KEYS if isinstance(made.get(key), str)), None)
        if named is not None and _VALUE_KEY in made:
            made[_VALUE_KEY] = self._walk_named(named, made[_VALUE_KEY], extra, labels)
        return made

    def _walk_named(self, key: Any, value: Any, extra: Secrets | None, labels: Labels) -> Any:
        """Name and value lie apart, where no rule for texts would see them together."""
        from commonplace.engine.redaction import scanner

        if isinstance(key, str):
            if isinstance(value, list):
                return [self._walk_named(key, item, extra, labels) for item in value]
            if isinstance(value, dict) and isinstance(value.get(_VALUE_KEY), str) and _VALUE_KEY not in key:
                value = {**value, _VALUE_KEY: self._walk_named(key, value[_VALUE_KEY], extra, labels)}
            text = str(value) if type(value) is int and value >= _MIN_NUMBER else value
            if isinstance(text, str) and (label := scanner.named_secret(key, text, self._secrets_in_force(extra))):
                labels.append(label)
                return self.marker(label)
        return self._walk(value, extra, labels)


def strings(value: Any) -> Iterator[str]:
    """Every string in a document, keys too."""
    todo = [value]
    while todo:
        part = todo.pop()
        if isinstance(part, str):
            yield part
        elif isinstance(part, dict):
            todo += part.keys()
            todo += part.values()
        elif isinstance(part, (list, tuple)):
            todo += part


def _other_texts(record: Draft | Memory) -> Iterator[str]:
    for name in (*_TEXTS, *_DOCUMENTS, *_NAMES):
        value = getattr(record, name)
        if not value:
            continue
        if isinstance(value, str):
            yield value
        else:
            yield from strings(value)
