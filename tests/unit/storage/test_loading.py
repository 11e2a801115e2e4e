"""How far a start is in loading its logs, and a start that is ended (ST-8)."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from barnabas.config import LogConfig
from barnabas.storage.loading import Loading, LoadingStopped
from barnabas.storage.store import LogStore
from barnabas.types import TopicPartition
from tests.kit.storage.disk import QuickFiles, append, batch

NAMES = [TopicPartition("t", number) for number in range(3)]


class Ticking:
    """Each look at it is so much later."""

    def __init__(self, step_ms: int) -> None:
        self._step_ms = step_ms
        self._now_ms = 0

    def monotonic_ms(self) -> int:
        self._now_ms += self._step_ms
        return self._now_ms

    wall_ms = monotonic_ms


def crashed(directory: Path, batches: int = 1, size: int = 10) -> None:
    store = LogStore.open(QuickFiles(), [directory], config=LogConfig(), broker_id=0, now_ms=0)
    for name in NAMES:
        log = store.create(name, bytes(15) + b"\x07", LogConfig())
        for _ in range(batches):
            append(log, batch(1, size))
    store.release()


def load(directory: Path, loading: Loading) -> LogStore:
    store = LogStore(QuickFiles(), 0, 86_400_000)
    store.begin([directory], LogConfig(), 0, loading)
    return store


def test_st_8_a_long_start_says_how_far_it_is(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    crashed(tmp_path)
    load(tmp_path, Loading(Ticking(2_000))).close()
    lines = [each.getMessage() for each in caplog.records if "loading" in each.name]
    assert f"recovering 3 logs from {tmp_path} since no clean shutdown file was found" in lines
    assert f"loading logs from {tmp_path}: 1/3 logs completed, at t-1, 0 MB read" in lines
    assert any(line.startswith(f"loaded 3 logs from {tmp_path} in ") for line in lines)


def test_a_quick_start_says_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    load(tmp_path, Loading(Ticking(1))).close()
    assert [each.getMessage() for each in caplog.records if "loading" in each.name] == []


def test_st_8_a_start_that_is_ended_leaves_the_directory_as_after_a_crash(tmp_path: Path) -> None:
    crashed(tmp_path)
    loading = Loading(Ticking(1))
    loading.is_stopped = True
    with pytest.raises(LoadingStopped, match="0/3 logs"):
        load(tmp_path, loading)
    assert not (tmp_path / ".kafka_cleanshutdown").exists()
    store = load(tmp_path, Loading(Ticking(1)))  # its lock was given back
    assert [store.logs[name].log_end_offset for name in NAMES] == [1, 1, 1]
    store.close()


def test_st_8_a_start_is_ended_in_the_middle_of_a_log(tmp_path: Path) -> None:
    crashed(tmp_path, batches=4, size=800_000)

    class Impatient(Loading):
        def read(self, size_bytes: int) -> None:
            self.is_stopped = True
            super().read(size_bytes)

    with pytest.raises(LoadingStopped, match="0/3 logs"):
        load(tmp_path, Impatient(Ticking(1)))
