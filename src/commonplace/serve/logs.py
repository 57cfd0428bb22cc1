"""Logs as JSON lines on stderr: what happened, never what was said."""

from __future__ import annotations

import json
import logging
import sys
import traceback
from datetime import UTC, datetime
from typing import Any

access = logging.getLogger("commonplace.access")
log = logging.getLogger("commonplace.serve")


class JsonLines(logging.Formatter):
    """An exception is logged as its type and where it came from: its text may quote a memory."""

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, Any] = {"at": moment.replace("+00:00", "Z"), "level": record.levelname.lower()}
        fields = getattr(record, "fields", None)
        if fields is not None:
            line |= fields
        else:
            line |= {"logger": record.name, "message": record.getMessage()}
        if record.exc_info and record.exc_info[1] is not None:
            line |= error_location(record.exc_info[1])
        return json.dumps(line, ensure_ascii=False)


def error_location(error: BaseException) -> dict[str, Any]:
    frames = traceback.extract_tb(error.__traceback__)[-6:]
    lines = [f"{frame.filename.rpartition('site-packages/')[2]}:{frame.lineno} {frame.name}" for frame in frames]
    return {"exception": type(error).__name__, "where": lines}


def log_bug(operation: str, error: Exception, **fields: str) -> None:
    """An exception that is our own fault: its kind and its place, never its text, which may quote a memory."""
    log.error("bug", extra={"fields": {"event": "bug", **fields, "operation": operation, **error_location(error)}})


def configure(level: str) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name in ("commonplace", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.propagate = False
        logger.setLevel(level.upper())
    logging.getLogger("uvicorn").setLevel("WARNING")  # its start and stop are told in our own words
