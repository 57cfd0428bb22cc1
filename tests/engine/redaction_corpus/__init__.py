"""Texts with secrets in them, and texts that only look as if: both made at run time, the same ones every time."""
