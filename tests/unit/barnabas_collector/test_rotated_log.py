"""What is saved of a file before its lines are sent, by which it is found again after a kill."""

from __future__ import annotations

import shutil
from collections.abc import Collection
from pathlib import Path

from barnabas_collector.file_progress import FileProgress
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


class Truncating(Registry):
    """A registry, during whose search a log is truncated: after the look, before the comparison."""

    log: Path | None = None

    def candidates(self, log: str, inodes: Collection[int]) -> list[FileProgress]:
        if self.log is not None:
            shutil.copy(self.log, f"{self.log}.1")
            self.log.write_bytes(HEADER)
            self.log = None
        return super().candidates(log, inodes)


def test_sp_4_a_log_truncated_between_look_and_comparison_is_not_sent_again(tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    log.write_bytes(HEADER + LINES)
    (tmp_path / "access.log.1").write_bytes(HEADER)  # half a copy
    files = Truncating(tmp_path / "registry.json")
    with RotatedLog(log, files) as rotated:
        for portion in rotated.portions():
            files.save(portion.progress)
        files.log = log
        again = [line.text for portion in rotated.portions() for line in portion.lines]
    assert again == [HEADER.rstrip()]


def test_sp_4_the_same_lines_are_new_after_the_log_was_seen_empty(tmp_path: Path) -> None:
    """SP-4: a report without times that a program writes anew; the copy of the old one is known."""
    log, registry = tmp_path / "report.log", tmp_path / "registry.json"

    def sent() -> list[bytes]:
        with RotatedLog(log, files) as rotated:
            texts = []
            for portion in rotated.portions():
                files.save(portion.progress)
                texts += [line.text for line in portion.lines]
            return texts

    log.write_bytes(LINES)
    files = Registry(registry)
    assert sent() == LINES.splitlines()
    shutil.copy(log, tmp_path / "report.log.1")
    log.write_bytes(b"")
    assert sent() == []
    with log.open("ab") as program:
        program.write(LINES)
    assert sent() == LINES.splitlines()
    (tmp_path / "report.log.1").unlink()
    log.write_bytes(b"")
    assert sent() == []
    files = Registry(registry)
    log.write_bytes(LINES)
    assert sent() == LINES.splitlines()
