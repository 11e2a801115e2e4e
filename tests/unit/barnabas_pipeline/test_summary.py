"""The steps of a run: nothing is silent on a terminal, and a pipe gets each line once (UX-1)."""

from __future__ import annotations

import io

import pytest

from barnabas_pipeline.summary import Steps


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_ux_1_a_terminal_shows_what_a_step_does_until_its_line_takes_the_place() -> None:
    terminal = Terminal()
    steps = Steps(terminal)
    with steps.step("spark", "starting") as results:
        while "starting ... 0 s" not in terminal.getvalue():
            pass
        results.append("4.3.0 on local[*]")
    begun, _, last = terminal.getvalue().rpartition("\r\x1b[K")
    assert begun.startswith("\rspark       starting ... 0 s")
    assert last.startswith("spark       4.3.0 on local[*]  (")


def test_ux_1_a_step_that_fails_leaves_an_empty_line() -> None:
    terminal = Terminal()
    with pytest.raises(OSError, match="full"), Steps(terminal).step("spark", "starting"):
        raise OSError("full")
    assert terminal.getvalue().endswith("\r\x1b[K")


def test_a_pipe_gets_each_line_once() -> None:
    pipe = io.StringIO()
    steps = Steps(pipe)
    with steps.step("input", "generating") as results, steps.meanwhile("report", "rendering"):
        results.append("access.log")
    assert (
        pipe.getvalue().startswith("input       access.log  (") and pipe.getvalue().count("\n") == 1
    )
