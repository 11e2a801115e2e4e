"""ST-8: a cleaner says where it will leave gaps, before it does."""

from __future__ import annotations

import shutil
from itertools import pairwise
from pathlib import Path

import pytest

from barnabas.config import LogConfig
from barnabas.protocol.api import PRODUCE
from barnabas.records.control_records import ABORT, Marker, build_marker
from barnabas.records.record import BatchBuilder
from barnabas.storage.files import OsFiles
from barnabas.storage.gaps import FILE_NAME
from barnabas.storage.log import Log
from barnabas.storage.store import LogStore
from barnabas.types import TopicPartition
from tests.kit.broker.cleaned import Cleaned
from tests.kit.broker.produces import produce_request
from tests.kit.storage.disk import read

NOW_MS = 1_700_000_000_000


@pytest.mark.parametrize("inline", [True, False])
def test_st_8_what_was_cleaned_is_on_disk_and_no_loss(
    cleaned: Cleaned, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, inline: bool
) -> None:
    """A machine that dies now knows nothing of a recovery point yet."""
    cleaned.create("t")
    cleaned.fill("t")
    log = cleaned.log("t")
    assert (log.gaps.end, log.recovery_point) == (0, 0)
    cleaner = cleaned.cleaner(inline=inline)
    assert cleaned.run(cleaner.clean_once()) is True
    cleaned.run(cleaner.end())
    assert log.first_dirty_offset <= log.gaps.end <= log.recovery_point
    assert (tmp_path / "t-0" / FILE_NAME).read_text() == str(log.gaps.end)
    segments = log.segments
    assert any(each.end_offset() < following.base_offset for each, following in pairwise(segments))
    copy = tmp_path_factory.mktemp("crashed") / "logs"
    shutil.copytree(tmp_path / "t-0", copy / "t-0")
    store = LogStore.open(OsFiles(), [copy], config=LogConfig(), broker_id=0, now_ms=0)
    found = store.logs[TopicPartition("t", 0)]
    assert (read(found, 0), found.log_end_offset) == (read(log, 0), log.log_end_offset)
    store.close()


def test_a_log_that_was_cut_meanwhile_gets_no_gaps(cleaned: Cleaned) -> None:
    cleaned.create("t")
    cleaned.fill("t")
    log, cleaner = cleaned.log("t"), cleaned.cleaner()
    assert cleaned.run(cleaner._allow_gaps(log, 20, lambda: False)) is False
    assert log.gaps.end == 0
    assert cleaned.run(cleaner._allow_gaps(log, 20, lambda: True)) is True
    assert (log.gaps.end, (log.directory / FILE_NAME).read_text()) == (20, "20")


def test_st_7_a_tombstone_does_not_wait_for_another_record(cleaned: Cleaned) -> None:
    """KIP-354: the active segment rolls when its first record is due, however quiet the topic."""
    cleaned.create("t", **{"segment.bytes": "1000000", "max.compaction.lag.ms": "1000"})
    log, cleaner = cleaned.log("t"), cleaned.cleaner()
    now_ms = cleaned.server.clock.wall_ms()
    for age_ms, value in ((5000, b"old"), (4500, None)):
        builder = BatchBuilder(0)
        builder.append(now_ms - age_ms, b"k", value)
        sent = produce_request("t", {0: builder.build()})
        answer = cleaned.client.call(PRODUCE, 9, sent).responses[0].partition_responses[0]
        assert answer.error_code == 0
    assert len(log.segments) == 1
    assert cleaned.run(cleaner.clean_once()) is True
    assert [segment.base_offset for segment in log.segments] == [0, 2]
    assert [record.value for record in cleaned.read("t")] == [None]


# --- open transactions ---------------------------------------------------------------------------


async def begin_transaction(log: Log, key: bytes) -> None:
    builder = BatchBuilder(0, 8, 0, 0, is_transactional=True)
    builder.append(NOW_MS, key, b"not committed")
    log.append(memoryview(bytearray(builder.build())), 0, NOW_MS)
    log.write_staged()


async def abort_transaction(log: Log) -> None:
    marker = build_marker(Marker(0, NOW_MS, ABORT, 0), 8, 0)
    log.append_control(memoryview(bytearray(marker)), 0, NOW_MS)
    log.write_staged()


@pytest.mark.parametrize("inline", [True, False])
def test_st_7_what_an_open_transaction_wrote_makes_nothing_obsolete(
    cleaned: Cleaned, inline: bool
) -> None:
    """The high watermark is far above the last stable offset: it may still be aborted, and what it
    would have replaced must be there then."""
    cleaned.create("t")
    cleaned.produce("t", ("k", "committed"))
    log = cleaned.log("t")
    cleaned.run(begin_transaction(log, b"k"))
    cleaned.fill("t")
    replica = cleaned.server.node.replicas.leader_of(TopicPartition("t", 0))
    assert replica.partition.high_watermark == log.log_end_offset == 42
    assert len(log.segments) > 3
    assert replica.last_stable_offset == 1
    cleaner = cleaned.cleaner(inline=inline)
    while cleaned.run(cleaner.clean_once()):
        pass
    assert log.first_dirty_offset <= 1, "nothing from the last stable offset on is cleaned"
    cleaned.run(abort_transaction(log))
    cleaned.fill("t")
    while cleaned.run(cleaner.clean_once()):
        pass
    cleaned.run(cleaner.end())
    assert log.first_dirty_offset > 42
    values = [record.value for record in cleaned.read("t") if record.key == b"k"]
    assert values == [b"committed"]


def test_the_process_has_a_secret_of_its_own_for_hashes(
    cleaned: Cleaned, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a client that knows the broker's secret could write keys that collide."""
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    cleaned.create("t")
    cleaned.fill("t")
    cleaner = cleaned.cleaner(inline=False)
    cleaned.run(cleaner.clean_once())
    pid = cleaner._process.pid
    assert pid is not None
    environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    cleaned.run(cleaner.end())
    assert b"PYTHONHASHSEED=random" in environment
