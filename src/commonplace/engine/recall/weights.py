"""What each feature of a candidate is worth: weights.json, written by `python -m bench.quality tune --write`.

docs/recall.md says what every feature means. Candidates are ordered by the weighted sum; 1 / (1 + exp(-(scale * sum +
bias))) makes it a probability, which is the score.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

FILE = Path(__file__).with_name("weights.json")
_FITTED = json.loads(FILE.read_text("utf-8"))

WEIGHTS: Mapping[str, float] = _FITTED["weights"]
SCALE: float = _FITTED["scale"]
BIAS: float = _FITTED["bias"]
