"""The log of a broker's process: lines for people, or JSON for programs (`barnabas.log.format`).

Either way one record is one line; only a traceback adds lines, and in JSON it does not.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import Any, Final

from barnabas.printable import printable

LOG_FORMAT: Final = "barnabas.log.format"

_LOG_FILE_BYTES = 10 * 1024 * 1024
_OLD_LOG_FILES = 9


class LineFormatter(logging.Formatter):
    """`time level logger message`, the time in UTC with milliseconds; one record, one line.

    What comes from outside stays within it: a name with a line end in it would forge a line, and
    one with an escape would command the terminal that shows the log.
    """

    converter = staticmethod(time.gmtime)
    default_time_format = "%Y-%m-%dT%H:%M:%S"
    default_msec_format = "%s.%03dZ"

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:
        # After the arguments are in: a name from outside may hold a line end.
        return printable(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:
        return "\n".join(map(printable, super().formatException(ei).split("\n")))


class JsonFormatter(LineFormatter):
    """An object a line: time, level, logger, message, broker and, where there is one, exception.

    Only ASCII leaves, with everything else escaped, so nothing from outside ends a line.
    """

    def __init__(self, broker_id: int) -> None:
        super().__init__()
        self._broker_id = broker_id

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, str | int] = {
            "time": self.formatTime(record),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            "broker": self._broker_id,
        }
        # A field of its own, so that one record stays one line for the program that reads it.
        if record.exc_info:
            fields["exception"] = logging.Formatter.formatException(self, record.exc_info)
        return json.dumps(fields)


def formatter(log_format: str, broker_id: int) -> LineFormatter:
    """Return the formatter for a value of `barnabas.log.format`."""
    return JsonFormatter(broker_id) if log_format == "json" else LineFormatter()


def log_handler(log_file: str | None, most_bytes: int = _LOG_FILE_BYTES) -> logging.Handler:
    """Standard error, or files that are replaced before they have `most_bytes`. Raises OSError."""
    if log_file is None:
        return logging.StreamHandler(sys.stderr)
    from logging.handlers import RotatingFileHandler  # few brokers need it

    return RotatingFileHandler(
        log_file, maxBytes=most_bytes, backupCount=_OLD_LOG_FILES, encoding="utf-8"
    )


def final_line(reason: object, log_format: str, broker_id: int) -> str:
    """Return the line on standard error that says why this process ends."""
    if log_format != "json":
        return f"barnabas: {reason}\n"
    record = logging.LogRecord("barnabas", logging.ERROR, "", 0, str(reason), None, None)
    return f"{JsonFormatter(broker_id).format(record)}\n"
