"""Formats a broker's log as text for people or as JSON for programs (`barnabas.log.format`).

In both formats, each record occupies one line, except that text records can have tracebacks.
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
    """Formats a record as a single line, `time level logger message`, with the time in UTC and to
    the millisecond.

    Untrusted text is escaped, because a newline in a name could be used to forge a log line and an
    escape sequence could control the terminal that displays the log.
    """

    converter = staticmethod(time.gmtime)
    default_time_format = "%Y-%m-%dT%H:%M:%S"
    default_msec_format = "%s.%03dZ"

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:
        # Escape the text after the arguments have been inserted, because they may contain newlines.
        return printable(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:
        return "\n".join(map(printable, super().formatException(ei).split("\n")))


class JsonFormatter(LineFormatter):
    """Formats each record as a JSON object on a single line, with the time, level, logger, message,
    broker and any exception.

    The output consists only of ASCII characters, and all other characters are escaped, so untrusted
    text cannot end a line.
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
        # Put the traceback in its own field, so that each record stays on one line.
        if record.exc_info:
            fields["exception"] = logging.Formatter.formatException(self, record.exc_info)
        return json.dumps(fields)


def formatter(log_format: str, broker_id: int) -> LineFormatter:
    """Return the formatter for this value of `barnabas.log.format`."""
    return JsonFormatter(broker_id) if log_format == "json" else LineFormatter()


def log_handler(log_file: str | None, most_bytes: int = _LOG_FILE_BYTES) -> logging.Handler:
    """Return a handler for standard error, or for files that are rotated before they exceed
    `most_bytes`.

    Raises OSError.
    """
    if log_file is None:
        return logging.StreamHandler(sys.stderr)
    from logging.handlers import RotatingFileHandler  # few brokers need it

    return RotatingFileHandler(
        log_file, maxBytes=most_bytes, backupCount=_OLD_LOG_FILES, encoding="utf-8"
    )


def final_line(reason: object, log_format: str, broker_id: int) -> str:
    """Return the line written to standard error that explains why the process ends."""
    if log_format != "json":
        return f"barnabas: {reason}\n"
    record = logging.LogRecord("barnabas", logging.ERROR, "", 0, str(reason), None, None)
    return f"{JsonFormatter(broker_id).format(record)}\n"
