"""`python -m barnabas_pipeline` as its users run it: killed and run again, and as a service."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas_pipeline.behaviour.generator import write_log
from tests.kit.pipeline.table_batches import ALL, accounts_in, tables_in
from tests.pipeline.independent import compute
from tests.pipeline.run_command import PATIENCE_S, Command, running_command


@pytest.fixture
def command(tmp_path: Path) -> Iterator[Command]:
    with running_command(tmp_path / "out", tmp_path / "access.log") as command:
        yield command


def test_a_killed_run_continues_and_nothing_counts_twice_sp_4(command: Command) -> None:
    """SP-4: kill -9 in the middle of a batch; the next run ends like an undisturbed one."""
    write_log(command.log, lines=4_000, seed=7)
    found = compute(command.log)
    process = command.start("--batch", "900")
    second = command.out / "tables" / "dead_letters" / "_delta_log" / f"{1:020}.json"
    command.until(second.exists)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    control = tables_in(command.out / "tables").control()
    assert control is not None and control.batch < 4, "killed before the end"
    assert accounts_in(command.out / "tables").read < found.lines

    output, errors = command.start("--batch", "900").communicate(timeout=PATIENCE_S)
    assert command.process is not None and command.process.returncode == 0, errors
    assert "in all      read 4,000 = " in output
    assert (command.out / "report.html").stat().st_size > 20_000
    command.agrees(found)


@pytest.mark.soak
@pytest.mark.timeout(1_800)
def test_a_run_that_is_killed_at_each_commit_sp_4(command: Command) -> None:
    """SP-4, SP-3: at each table, the control table, and Spark's own, a batch later each time."""
    write_log(command.log, lines=12_000, seed=9)
    found = compute(command.log)
    commits = [*ALL, "control", None]
    for batch, name in enumerate(commits):
        process = command.start("--batch", "600")
        if name is None:
            commit = command.out / "checkpoint" / "commits" / str(batch)
        else:
            commit = command.out / "tables" / name / "_delta_log" / f"{batch:020}.json"
        command.until(commit.exists)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
    _, errors = command.start("--batch", "600").communicate(timeout=PATIENCE_S)
    assert command.process is not None and command.process.returncode == 0, errors
    command.agrees(found)


@pytest.mark.slow
def test_a_service_follows_the_log_and_ends_on_sigterm_sp_4(command: Command) -> None:
    """SP-4: the same job, continuously; the report grows with the log."""
    write_log(command.log, lines=600, seed=8)
    content = command.log.read_bytes()
    half = content.index(b"\n", len(content) // 2) + 1
    command.log.write_bytes(content[:half])
    process = command.start("--service")
    tables, report = command.out / "tables", command.out / "report.html"
    command.until(
        lambda: report.exists() and accounts_in(tables).read == compute(command.log).lines
    )
    with command.log.open("ab") as file:
        file.write(content[half:-10])  # the last line is not whole yet
    command.until(lambda: accounts_in(tables).read == 599)
    with command.log.open("ab") as file:
        file.write(content[-10:])
    command.until(lambda: accounts_in(tables).read == 600)
    refresh = 'http-equiv="refresh"'
    assert refresh in report.read_text("utf-8"), "an open page follows"
    process.send_signal(signal.SIGTERM)
    output, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, errors
    assert "lines       read 600 = " in output
    assert refresh not in report.read_text("utf-8")
    command.agrees(compute(command.log))


@pytest.mark.parametrize(
    ("name", "reason"),
    [("missing.log", "there is no such file"), (".", "it is a directory; name a file in it")],
)
def test_an_input_that_cannot_be_read_is_one_clear_line_ux_4(
    command: Command, tmp_path: Path, name: str, reason: str
) -> None:
    """UX-4: what, where, what to do; no traceback, and no Spark started for nothing."""
    command.log = tmp_path / name
    _, errors = command.start().communicate(timeout=PATIENCE_S)
    assert command.process is not None and command.process.returncode == 1
    assert errors == f"barnabas: cannot read {command.log}: {reason}\n"


@pytest.mark.slow
def test_ux_4_a_log_without_a_valid_line_fails_with_words(command: Command) -> None:
    """UX-4, SP-2: there is a page, which says the same, and its figures are no success."""
    front = "2001:db8::1 10.0.0.3 - - [17/May/2015:10:05:03 +0200]"
    command.log.write_text(f'{front} "GET / HTTP/1.1" 200 5 "-" "A"\n' * 30)
    _, errors = command.start().communicate(timeout=PATIENCE_S)
    assert command.process is not None and command.process.returncode == 1
    assert errors.startswith("barnabas: none of 30 lines is valid: 30 a virtual host or a second")
    assert "line 1: 2001:db8::x 10.0.0.x - -" in errors and errors.count("\n") == 1
    page = (command.out / "report.html").read_text("utf-8")
    assert "100% of the lines were rejected" in " ".join(page.split())
