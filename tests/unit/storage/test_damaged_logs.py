"""A damaged log costs that log, and nothing else of its directory (ST-8)."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from barnabas.config import LogConfig
from barnabas.storage.store import LogStore
from barnabas.types import TopicPartition
from tests.kit.storage.disk import QuickFiles, append, batch

DAMAGED, OTHER = (TopicPartition("t", partition) for partition in range(2))
TOPIC_ID = bytes(range(16))
CONFIG = LogConfig(segment_bytes=300)


def _open(directory: Path) -> LogStore:
    return LogStore.open(QuickFiles(), [directory], config=CONFIG, broker_id=0, now_ms=0)


def _crashed(directory: Path) -> Path:
    """Two logs of some segments, the first durable up to its fifth batch; a bit of a length in its
    second segment has flipped, and no snapshot covers that. Returns the segment."""
    store = _open(directory)
    logs = [store.create(name, TOPIC_ID, CONFIG) for name in (DAMAGED, OTHER)]
    for i in range(5):
        for log in logs:
            append(log, batch(1, 150, producer=(9, 0, i)))
    logs[0].flush()
    store.checkpoint_recovery_points()
    append(logs[0], batch(1, 150, producer=(9, 0, 5)))
    store.checkpoint_high_watermarks({DAMAGED: 5, OTHER: 5})
    store.release()
    second = directory / str(DAMAGED) / f"{1:020}.log"
    raw = bytearray(second.read_bytes())
    raw[9] ^= 1
    second.write_bytes(raw)
    for path in (directory / str(DAMAGED)).glob("*.snapshot"):
        path.unlink()
    return second


def test_st_8_damage_costs_the_log_that_has_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    second = _crashed(tmp_path)
    raw = second.read_bytes()
    for _ in range(2):  # the second start must not scan what the first one could not
        caplog.clear()
        store = _open(tmp_path)
        assert store.directories.online == (tmp_path,)
        assert list(store.logs) == [OTHER]
        assert store.logs[OTHER].log_end_offset >= 5
        assert list(store.damaged) == [DAMAGED]
        (line,) = [each.message for each in caplog.records if each.levelno == logging.ERROR]
        assert f"{second}, byte 0" in line
        with pytest.raises(OSError, match="is damaged"):
            store.create(DAMAGED, TOPIC_ID, CONFIG, is_new=True)
        assert not store.begins_whole(b"boot")
        append(store.logs[OTHER], batch(1))
        store.checkpoint_recovery_points()
        store.close()
        assert second.read_bytes() == raw
        assert not (tmp_path / ".kafka_cleanshutdown").exists()


def test_st_8_a_repaired_log_is_complete(tmp_path: Path) -> None:
    second = _crashed(tmp_path)
    store = _open(tmp_path)
    store.checkpoint_high_watermarks({})
    store.close()
    raw = bytearray(second.read_bytes())
    raw[9] ^= 1
    second.write_bytes(raw)
    store = _open(tmp_path)
    log = store.logs[DAMAGED]
    assert (log.log_end_offset, log.recovery_point) == (6, 4), "not scanned from its start"
    assert store.high_watermarks[DAMAGED] == 5
    assert log.producers.ids() == [9]
    store.close()


@pytest.mark.parametrize("is_stray", [True, False])
def test_a_damaged_log_makes_room_for_another(tmp_path: Path, is_stray: bool) -> None:
    _crashed(tmp_path)
    store = _open(tmp_path)
    assert store.set_aside(DAMAGED, is_stray=is_stray) == tmp_path
    assert not store.damaged
    log = store.create(DAMAGED, TOPIC_ID, CONFIG)
    assert log.log_end_offset == 0
    store.directories.purge_deleted()
    kept = [path.name for path in tmp_path.iterdir() if path.name.endswith("-stray")]
    assert kept == ([f"t-0.{TOPIC_ID.hex()}-stray"] if is_stray else [])
    store.close()
    store = _open(tmp_path)
    assert list(store.logs) == [DAMAGED, OTHER]
    store.close()


def test_a_topic_id_that_cannot_be_read_costs_its_log(tmp_path: Path) -> None:
    store = _open(tmp_path)
    for name in (DAMAGED, OTHER):
        append(store.create(name, TOPIC_ID, CONFIG), batch(1))
    store.close()
    (tmp_path / str(DAMAGED) / "partition.metadata").write_bytes(b"version: x\n")
    (tmp_path / ".barnabas_topic_ids").unlink()  # as of a log that is older than this file
    store = _open(tmp_path)
    assert (list(store.logs), list(store.damaged)) == ([OTHER], [DAMAGED])
    assert store.damaged[DAMAGED].topic_id is None
    store.close()
