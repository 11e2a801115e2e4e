"""The log of a broker's own process."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from barnabas.broker.runtime import process_log


@pytest.fixture
def line() -> logging.LogRecord:
    return logging.LogRecord("barnabas", logging.INFO, "", 1, "%s", ("a\nb\x1b[2J",), None)


def test_what_comes_from_outside_stays_on_its_line(line: logging.LogRecord) -> None:
    shown = process_log.LineFormatter().format(line)
    assert shown.endswith(r" INFO barnabas a\nb\x1b[2J")
    assert "\n" not in shown


def test_a_traceback_has_lines_but_commands_no_terminal(line: logging.LogRecord) -> None:
    try:
        raise ValueError("c\x1b[2J")
    except ValueError as error:
        line.exc_info = (ValueError, error, error.__traceback__)
    assert process_log.LineFormatter().format(line).splitlines()[-1] == r"ValueError: c\x1b[2J"


def test_log_files_are_replaced_before_they_are_large(
    tmp_path: Path, line: logging.LogRecord
) -> None:
    handler = process_log.log_handler(str(tmp_path / "data.log"), most_bytes=100)
    try:
        for _ in range(200):
            handler.emit(line)
    finally:
        handler.close()
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == ["data.log", *(f"data.log.{number}" for number in range(1, 10))]
    assert all(path.stat().st_size <= 100 for path in tmp_path.iterdir())


def test_json_is_an_object_a_line_whatever_the_message_holds(line: logging.LogRecord) -> None:
    """The fields are the same in every line, so that a program needs no pattern."""
    line.created, line.msecs = 1_700_000_000.25, 250.0
    written = process_log.formatter("json", 7).format(line)
    assert written.isascii() and written.isprintable()
    assert json.loads(written) == {
        "time": "2023-11-14T22:13:20.250Z",
        "level": "INFO",
        "logger": "barnabas",
        "message": "a\nb\x1b[2J",
        "broker": 7,
    }


def test_a_traceback_stays_on_the_json_line(line: logging.LogRecord) -> None:
    try:
        raise ValueError("caf\u00e9\u2028\ud800")
    except ValueError as error:
        line.exc_info = (ValueError, error, error.__traceback__)
    written = process_log.formatter("json", 0).format(line)
    assert written.isascii() and written.isprintable()
    assert json.loads(written)["exception"].startswith("Traceback (most recent call last):\n")
    assert json.loads(written)["exception"].endswith("ValueError: caf\u00e9\u2028\ud800")


def test_the_reason_of_an_end_has_the_form_of_the_log() -> None:
    assert process_log.final_line(OSError("a"), "text", 7) == "barnabas: a\n"
    ended = json.loads(process_log.final_line(OSError("100 % full"), "json", 7))
    assert (ended["level"], ended["message"], ended["broker"]) == ("ERROR", "100 % full", 7)
