"""What is saved of a file before its lines are sent, by which it is found again after a kill."""

from __future__ import annotations

import shutil
from pathlib import Path

from barnabas_collector.registry import Registry
from barnabas_collector.rotated_log import RotatedLog

HEADER = b"#Fields: client ident user line\n"
LINES = b"192.0.2.1 - - one\n192.0.2.2 - - two\n"


def test_sp_4_lines_behind_a_header_are_recognised_in_a_copy_after_a_kill(tmp_path: Path) -> None:
    """The look saw the header alone; the lines came while it was being sent."""
    log, registry = tmp_path / "access.log", tmp_path / "registry.json"
    log.write_bytes(HEADER)
    files = Registry(registry)
    with RotatedLog(log, files) as rotated:
        portions = rotated.portions()
        first = next(portions)
        files.save(first.progress)
        with log.open("ab") as server:
            server.write(LINES)
        sent = next(portions)
    assert [line.text for line in sent.lines] == LINES.splitlines()
    # The broker has them; the position behind them is not saved.
    shutil.copy(log, tmp_path / "access.log.1")
    log.write_bytes(HEADER + b"192.0.2.3 - - three\n")

    with RotatedLog(log, Registry(registry)) as rotated:
        again = list(rotated.portions())
    assert [line.text for line in again[0].lines] == LINES.splitlines()
    assert again[0].progress.file_id == sent.progress.file_id
    assert again[0].lines[0].position == sent.lines[0].position
    assert again[1].progress.file_id != sent.progress.file_id
