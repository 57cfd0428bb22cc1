"""`python -m commonplace`."""

from __future__ import annotations

import sys

from commonplace.cli import main

sys.exit(main())
