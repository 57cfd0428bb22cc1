"""What is written is searched for secrets before it is kept, whichever protocol it came by."""

from commonplace.engine.redaction.redactor import Redactor
from commonplace.engine.redaction.registered_secrets import Secrets

__all__ = ["Redactor", "Secrets"]
