"""The one place that says which version this is, and by what name it is installed."""

__version__ = "0.1.0"
DISTRIBUTION = "commonplace-memory"  # `commonplace` on PyPI is somebody else's; the import and the command are ours


def install_command(extra: str) -> str:
    """What to type to have an optional part, for errors to say."""
    return f"pip install '{DISTRIBUTION}[{extra}]'"
