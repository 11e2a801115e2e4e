"""Kafka's own DumpLogSegments reads and verifies what we wrote (ST-1).

A log in every codec, with producers, several segments, both indexes, snapshots, log-append time;
once stopped in order and once recovered after a torn write.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from barnabas.config import LogConfig
from barnabas.storage.files import OsFiles
from barnabas.storage.loading import Start
from barnabas.storage.recovery import open_log
from barnabas.types import TopicPartition
from tests.kit import foreign
from tests.kit.storage.disk import T0, append, batch

pytestmark = pytest.mark.foreign

CONFIG = LogConfig(segment_bytes=4000, index_interval_bytes=200)
BATCHES = 60


def _write(directory: Path) -> int:
    """Returns the log end."""
    log = open_log(OsFiles(), directory, TopicPartition("t", 0), CONFIG, Start(is_clean=True))
    log.assign_leader_epoch(3)
    sequence = 0
    for i in range(BATCHES):
        if i == BATCHES // 2:
            log.config = CONFIG._replace(message_timestamp_type="LogAppendTime")
        producer = (77, 0, sequence) if i % 2 else None
        records = batch(1 + i % 4, 100, timestamp=T0 + i, producer=producer, codec=i % 5)
        append(log, records, epoch=3, now_ms=T0 + 1000 + i)
        sequence += 1 + i % 4 if i % 2 else 0
    log.close()
    return log.log_end_offset


def _dump(files: list[Path]) -> str:
    """What the tool prints; its exit status does not show whether it was content."""
    jars = foreign.require_kafka_jars()
    command = [
        str(foreign.require_java()),
        *("-cp", f"{jars}/*", "kafka.tools.DumpLogSegments"),
        *("--deep-iteration", "--files", ",".join(map(str, files))),
    ]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    return ran.stdout


def _check(directory: Path, end_offset: int) -> None:
    kinds = (".log", ".index", ".timeindex", ".snapshot")
    files = sorted(path for path in directory.iterdir() if path.suffix in kinds)
    assert len([path for path in files if path.suffix == ".log"]) > 2
    said = _dump(files)
    for complaint in ("Found", "mismatch", "isvalid: false", "corrupt", "Non-monotonic"):
        assert complaint not in said, said
    offsets = [int(offset) for offset in re.findall(r"^\| offset: (\d+)", said, re.MULTILINE)]
    assert offsets == list(range(end_offset))
    assert set(re.findall(r"compresscodec: (\w+)", said)) == {
        *("none", "gzip", "snappy", "lz4", "zstd")
    }
    assert "LogAppendTime" in said
    assert "producerId: 77 producerEpoch: 0" in said


def test_st_1_kafka_finds_nothing_wrong_after_a_clean_stop(tmp_path: Path) -> None:
    _check(tmp_path, _write(tmp_path))


def test_st_8_kafka_finds_nothing_wrong_after_a_recovery(tmp_path: Path) -> None:
    end_offset = _write(tmp_path)
    last = max(tmp_path.glob("*.log"))
    with last.open("r+b") as file:
        file.truncate(last.stat().st_size - 5)
    for path in tmp_path.glob("*.*index"):
        path.write_bytes(bytes(1200))
    log = open_log(OsFiles(), tmp_path, TopicPartition("t", 0), CONFIG, Start(is_clean=False))
    assert log.log_end_offset == end_offset - (1 + (BATCHES - 1) % 4)
    log.close()
    _check(tmp_path, log.log_end_offset)
