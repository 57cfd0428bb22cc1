"""Every tool of ours, with memorywire's requests and answers to the field: for who wants more than the small set."""

from __future__ import annotations

from commonplace.serve.protocols.memorywire import FULL_TOOLS

POSITION = 1  # beside the small set
TOOLS = FULL_TOOLS
