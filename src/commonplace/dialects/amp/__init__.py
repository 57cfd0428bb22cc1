"""AMP, the Agent Memory Protocol: its requests become engine calls, and what the engine answers its responses."""

from commonplace.dialects.amp.operations import Amp, envelope

__all__ = ["Amp", "envelope"]
