"""Recovery by several processes leaves what recovery by one does (ST-8)."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest

from barnabas.clock import SystemClock
from barnabas.config import LogConfig
from barnabas.storage.files import Files, OsFiles
from barnabas.storage.loading import Loading, LoadingStopped, Start
from barnabas.storage.log import Log
from barnabas.storage.python_child import start_child
from barnabas.storage.recovery import open_log
from barnabas.storage.recovery_child import job_line
from barnabas.storage.recovery_children import (
    LEAST_BYTES,
    Unscanned,
    are_worth_it,
    recover_all,
    unscanned_bytes,
)
from barnabas.types import TopicPartition
from tests.kit.storage.disk import CRASHED, QuickFiles, append, batch

CONFIG = LogConfig(segment_bytes=2000, index_interval_bytes=200)
NAMES = [TopicPartition("t", number) for number in range(3)]
PROCESSES = 2


def _crashed(directory: Path, number: int) -> Unscanned:
    """A log with producers and epochs, the last write of which is torn; flushed up to a point."""
    path = directory / str(NAMES[number])
    path.mkdir(parents=True)
    log = open_log(QuickFiles(), path, NAMES[number], CONFIG, Start(is_clean=True))
    for i in range(40 + number):
        append(log, batch(2, 50, timestamp=1000 + i, producer=(7, 0, 2 * i)), epoch=i // 10)
        if i == 15:
            log.flush()
    log.release()
    last = log.segments[-1].path(".log")
    last.write_bytes(last.read_bytes() + b"torn")
    start = CRASHED._replace(recovery_point=log.recovery_checkpoint, topic_id=bytes(16))
    return Unscanned(NAMES[number], path, start, log.size_bytes)


def _state(log: Log) -> tuple[object, ...]:
    found = (
        log.log_end_offset,
        log.recovery_point,
        log.recovery_checkpoint,
        log.topic_id,
        log.epochs.entries,
        [each[:46] for each in log.producers.states()],
        log.size_bytes,
        [
            (each.base_offset, each.size_bytes, len(each.offset_index), len(each.time_index))
            for each in log.segments
        ],
    )
    log.release()
    return found


def test_st_8_what_others_have_recovered_is_as_recovered_here(tmp_path: Path) -> None:
    logs = [_crashed(tmp_path / "one", number) for number in range(3)]
    shutil.copytree(tmp_path / "one", tmp_path / "other")
    loading = Loading(SystemClock())
    done = recover_all(PROCESSES, CONFIG, logs, loading)
    assert done == set(NAMES)
    for name, path, start, _ in logs:
        start = start._replace(is_scanned=True)
        here = tmp_path / "other" / path.name
        expected = _state(open_log(OsFiles(), here, name, CONFIG, start._replace(is_scanned=False)))
        before = {each.name: each.stat().st_mtime_ns for each in path.glob("*.log")}
        assert _state(open_log(OsFiles(), path, name, CONFIG, start)) == expected
        assert {each.name: each.stat().st_mtime_ns for each in path.glob("*.log")} == before


def test_a_damaged_log_is_left_to_the_broker(tmp_path: Path) -> None:
    logs = [_crashed(tmp_path, number) for number in range(3)]
    (logs[1].path / "partition.metadata").write_text("version: x\n")
    logs[1] = logs[1]._replace(start=logs[1].start._replace(topic_id=None))
    assert recover_all(PROCESSES, CONFIG, logs, None) == {
        NAMES[0],
        NAMES[2],
    }


@pytest.mark.parametrize(
    ("processes", "files", "size_bytes", "are_worth"),
    [
        (2, OsFiles(), LEAST_BYTES, True),
        (1, OsFiles(), LEAST_BYTES, False),
        (2, QuickFiles(), LEAST_BYTES, False),
        (2, OsFiles(), LEAST_BYTES - 1, False),
    ],
)
def test_processes_start_where_they_are_of_use(
    processes: int, files: Files, size_bytes: int, are_worth: bool
) -> None:
    log = Unscanned(NAMES[0], Path("t-0"), CRASHED, size_bytes)
    assert are_worth_it(processes, files, [log]) is are_worth


def test_a_stop_ends_the_processes(tmp_path: Path) -> None:
    loading = Loading(SystemClock())
    loading.is_stopped = True
    with pytest.raises(LoadingStopped):
        recover_all(PROCESSES, CONFIG, [_crashed(tmp_path, 0)], loading)


def test_a_child_ends_with_its_broker(tmp_path: Path) -> None:
    """Another broker may have the directory then."""
    _, path, start, _ = _crashed(tmp_path, 0)
    child = start_child("barnabas.storage.recovery_child")
    assert child.stdin is not None and child.stdout is not None
    os.kill(child.pid, signal.SIGSTOP)
    child.stdin.write(job_line(path, NAMES[0], CONFIG, start) + b"\n")
    child.stdin.close()
    os.kill(child.pid, signal.SIGCONT)
    assert child.stdout.read() == b""
    assert child.wait() == 0


def test_the_bytes_to_scan_begin_at_the_recovery_point(tmp_path: Path) -> None:
    _, path, _, whole = _crashed(tmp_path, 0)
    sizes = [each.stat().st_size for each in sorted(path.glob("*.log"))]
    second = int(sorted(path.glob("*.log"))[1].stem)
    assert unscanned_bytes(OsFiles(), path, 0) == sum(sizes) == whole + len(b"torn")
    assert unscanned_bytes(OsFiles(), path, second + 1) == sum(sizes[1:])
