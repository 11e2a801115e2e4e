"""What others chose commands no terminal; a pipe gets it as it is."""

from __future__ import annotations

import io

import pytest

from barnabas.cli.records.consume_command import Printer
from barnabas.cli.terminal import for_terminal, printable_bytes, printable_lines


class Output(io.BytesIO):
    def __init__(self, is_terminal: bool) -> None:
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal


def test_control_characters_are_written_out_but_lines_and_tabs_stay() -> None:
    assert printable_lines("a\tb\x1b[31m\r\nc\n") == "a\tb\\x1b[31m\\r\nc\n"
    assert printable_bytes(b"a\xff\x9b\n\xc2\x9b") == b"a\\xff\\x9b\n\\x9b"


@pytest.mark.parametrize("is_terminal", [False, True])
def test_records_are_raw_in_a_pipe_alone(is_terminal: bool) -> None:
    value = b"\x1b]0;owned\x07\xff"
    output = Output(is_terminal)
    Printer(output, lambda record: record + b"\n").show([value])  # type: ignore[arg-type]
    shown = rb"\x1b]0;owned\x07\xff" if is_terminal else value
    assert output.getvalue() == shown + b"\n"


@pytest.mark.parametrize("is_terminal", [False, True])
def test_names_are_raw_in_a_pipe_alone(is_terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    stdout = io.StringIO()
    monkeypatch.setattr(stdout, "isatty", lambda: is_terminal)
    monkeypatch.setattr("sys.stdout", stdout)
    assert for_terminal("g\x1b[2J\n") == ("g\\x1b[2J\n" if is_terminal else "g\x1b[2J\n")
