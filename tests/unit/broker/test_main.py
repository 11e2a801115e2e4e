"""The log of a broker's own process."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from barnabas.broker import main


@pytest.fixture
def line() -> logging.LogRecord:
    return logging.LogRecord("barnabas", logging.INFO, "", 1, "%s", ("a\nb\x1b[2J",), None)


def test_what_comes_from_outside_stays_on_its_line(line: logging.LogRecord) -> None:
    shown = main.LineFormatter().format(line)
    assert shown.endswith(r" INFO barnabas a\nb\x1b[2J")
    assert "\n" not in shown


def test_a_traceback_has_lines_but_commands_no_terminal(line: logging.LogRecord) -> None:
    try:
        raise ValueError("c\x1b[2J")
    except ValueError as error:
        line.exc_info = (ValueError, error, error.__traceback__)
    assert main.LineFormatter().format(line).splitlines()[-1] == r"ValueError: c\x1b[2J"


def test_log_files_are_replaced_before_they_are_large(
    tmp_path: Path, line: logging.LogRecord
) -> None:
    handler = main.log_handler(str(tmp_path / "data.log"), most_bytes=100)
    try:
        for _ in range(200):
            handler.emit(line)
    finally:
        handler.close()
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == ["data.log", *(f"data.log.{number}" for number in range(1, 10))]
    assert all(path.stat().st_size <= 100 for path in tmp_path.iterdir())
