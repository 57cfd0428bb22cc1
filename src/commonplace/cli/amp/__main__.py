"""`python -m commonplace.cli.amp`."""

from __future__ import annotations

import sys

from commonplace.cli.amp import main

sys.exit(main())
