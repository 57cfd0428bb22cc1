"""Secrets never reach the store: what is written is searched for them first, whichever protocol it came by."""

from commonplace.engine.redaction.redactor import Redactor
from commonplace.engine.redaction.registered import Secrets

__all__ = ["Redactor", "Secrets"]
