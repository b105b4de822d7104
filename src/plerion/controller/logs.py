"""Logs as lines of JSON on standard error: a machine can read each, and a line is never torn by what it quotes."""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime

import msgspec

QUIET = ("uvicorn", "uvicorn.error", "uvicorn.access", "asyncio")  # others' news is for those who debug


class JsonLines(logging.Formatter):
    """One object a record: time, level, where, message, and the traceback if there is one."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "where": record.name.removeprefix("plerion."),
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line).decode()


def set_up(level: str) -> None:
    """All of this process's logs, from this level on."""
    stream = logging.StreamHandler(sys.stderr)
    stream.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [stream]
    root.setLevel(level.upper())
    for name in QUIET:
        logging.getLogger(name).setLevel(level.upper() if level == "debug" else "WARNING")
