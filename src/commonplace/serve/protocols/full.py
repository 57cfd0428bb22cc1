"""Every tool of ours, for those who ask for more than the small set that conversations begin with."""

from __future__ import annotations

from commonplace.serve.protocols.memorywire import FULL_TOOLS

POSITION = 1  # beside the set that it extends
TOOLS = FULL_TOOLS
