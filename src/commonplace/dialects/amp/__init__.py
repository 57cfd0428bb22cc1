"""AMP, the Agent Memory Protocol: its requests become engine calls, and what the engine answers its responses."""

from commonplace.dialects.amp.faults import STATUS, envelope
from commonplace.dialects.amp.operations import OPERATIONS, Amp

__all__ = ["OPERATIONS", "STATUS", "Amp", "envelope"]
