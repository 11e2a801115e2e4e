"""The cleaner beside a broker: what it cleans, what it leaves alone, and that it leaves nothing."""

from __future__ import annotations

import logging
import os
import signal
from pathlib import Path

import pytest

from barnabas import Broker
from barnabas.broker.partitions.cleaner_schedule import CleanerSchedule
from barnabas.broker.partitions.log_cleaner import LogCleaner
from barnabas.broker.runtime.watched_clock import WatchedClock
from barnabas.records.control_records import ABORT, Marker, build_marker
from barnabas.records.record import BatchBuilder
from barnabas.storage.compaction.key_map import BYTES_PER_KEY
from barnabas.storage.log import Log
from barnabas.types import TopicPartition
from tests.kit.broker.cleaned import Cleaned
from tests.kit.clocks import SteppedClock
from tests.kit.raw_client import RawClient
from tests.kit.waiting import wait_until


def process_of(cleaning: CleanerSchedule) -> int | None:
    return None if cleaning.cleaner is None else cleaning.cleaner._process.pid


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("inline", [False, True])
def test_st_7_only_the_newest_value_of_a_key_is_left(cleaned: Cleaned, inline: bool) -> None:
    cleaned.create("users")
    cleaned.produce("users", ("user1", "Zhang San"), ("user1", "Li Si"), ("user1", "Wang Wu"))
    cleaned.log("users").roll()
    cleaner = cleaned.cleaner(inline=inline)
    assert cleaned.run(cleaner.clean_once()) is True
    (record,) = cleaned.read("users")
    assert (record.offset, record.key, record.value) == (2, b"user1", b"Wang Wu")
    assert cleaned.run(cleaner.clean_once()) is False
    cleaned.run(cleaner.end())


def test_st_6_nothing_is_compacted_while_its_age_is_not_known(cleaned: Cleaned) -> None:
    """A tombstone's horizon, a lag: neither may be judged by a clock that has just jumped."""
    cleaned.create("t")
    cleaned.fill("t")
    inner = SteppedClock()
    clock = WatchedClock(inner)
    assert clock.trusted_wall_ms() is not None
    cleaner = LogCleaner(cleaned.parts({}, inline=True)._replace(clock=clock))
    inner.step(30 * 86_400_000)
    assert cleaned.run(cleaner.clean_once()) is False
    inner.step(-30 * 86_400_000)
    assert cleaned.run(cleaner.clean_once()) is True


def test_it_runs_by_itself_and_ends_its_process(cleaned: Cleaned) -> None:
    """UX-3: log.cleaner.backoff.ms"""
    cleaned.create("t")
    cleaned.fill("t")
    cleaning = cleaned.cleaning(log_cleaner_backoff_ms="100")
    wait_until(lambda: cleaned.log("t").first_dirty_offset > 30)
    wait_until(lambda: process_of(cleaning) is None)
    cleaned.run(cleaning.stop())
    found = cleaned.read("t")
    assert len(found) < 20
    assert {record.key: record.value for record in found} == {
        b"k%d" % (i % 10): b"value %d" % i for i in range(30, 40)
    }


def test_it_can_be_switched_off(cleaned: Cleaned) -> None:
    """log.cleaner.enable"""
    cleaning = cleaned.cleaning(log_cleaner_enable="false")
    assert cleaning._task is None
    cleaned.run(cleaning.stop())


def test_what_is_clean_is_remembered(cleaned: Cleaned, tmp_path: Path) -> None:
    cleaned.create("t")
    cleaned.fill("t")
    cleaned.run(cleaned.cleaner().clean_once())
    offset = cleaned.log("t").first_dirty_offset
    assert offset > 0
    assert f"t 0 {offset}\n" in (tmp_path / "cleaner-offset-checkpoint").read_text()
    cleaned.log("t").first_dirty_offset = -1  # as after a restart
    assert cleaned.run(cleaned.cleaner().clean_once()) is False
    assert cleaned.log("t").first_dirty_offset == offset


def test_a_recreated_topic_is_not_taken_for_the_old_one(cleaned: Cleaned, tmp_path: Path) -> None:
    cleaned.create("t")
    cleaned.fill("t")
    cleaner = cleaned.cleaner()
    cleaned.run(cleaner.clean_once())
    cleaned.delete("t")
    cleaned.create("t")
    cleaned.run(cleaner.clean_once())
    assert (tmp_path / "cleaner-offset-checkpoint").read_text() == "0\n0\n"
    cleaned.fill("t")
    assert cleaned.run(cleaner.clean_once()) is True


def slowly(cleaned: Cleaned) -> CleanerSchedule:
    """A cleaner that needs minutes for any log; it is running."""
    return cleaned.cleaning(
        log_cleaner_backoff_ms="100",
        log_cleaner_io_max_bytes_per_second="100",
        log_cleaner_io_buffer_size="200",
    )


def is_written(directory: Path) -> bool:
    """Whether a pass has begun, or is about to."""
    return any(path.name.endswith(".cleaned") for path in directory.iterdir())


@pytest.mark.parametrize("change", ["delete", "truncate"])
def test_a_log_that_changes_is_given_up(
    cleaned: Cleaned, caplog: pytest.LogCaptureFixture, change: str
) -> None:
    """Nothing of the pass is left, and the cleaner goes on to other logs."""
    caplog.set_level(logging.WARNING)
    cleaned.create("t")
    cleaned.fill("t", 60)
    cleaning = slowly(cleaned)
    wait_until(lambda: process_of(cleaning) is not None)
    pid = process_of(cleaning)
    assert pid is not None
    log = cleaned.log("t")

    async def truncate() -> None:
        log.truncate(15)

    if change == "delete":
        cleaned.delete("t")
    else:
        cleaned.run(truncate())
    wait_until(lambda: not is_running(pid))
    if change == "truncate":
        assert log.log_end_offset == 15
        wait_until(lambda: not is_written(log.directory) or process_of(cleaning) not in (None, pid))
    cleaned.run(cleaning.stop())
    assert [each.getMessage() for each in caplog.records] == []


def test_appends_go_on_while_a_log_is_cleaned(cleaned: Cleaned) -> None:
    cleaned.create("t")
    cleaned.fill("t", 60)
    cleaning = cleaned.cleaning(
        log_cleaner_backoff_ms="100", log_cleaner_io_max_bytes_per_second="20000"
    )
    for _ in range(10):
        cleaned.fill("t", 10)
    wait_until(lambda: cleaned.log("t").first_dirty_offset >= 60)
    cleaned.run(cleaning.stop())
    newest = {record.key: record.value for record in cleaned.read("t")}
    assert newest == {b"k%d" % i: b"value %d" % i for i in range(10)}


def test_a_killed_process_is_logged_and_replaced(
    cleaned: Cleaned, caplog: pytest.LogCaptureFixture
) -> None:
    cleaned.create("t")
    cleaned.fill("t")
    cleaning = slowly(cleaned)
    wait_until(lambda: process_of(cleaning) is not None)
    pid = process_of(cleaning)
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: process_of(cleaning) not in (None, pid))
    cleaned.run(cleaning.stop())
    logged = [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]
    assert len(logged) == 1
    assert logged[0].startswith("compacting t-0 failed and will be retried: the cleaner process")
    assert process_of(cleaning) is None


def test_nothing_is_left_of_a_pass_at_the_stop(cleaned: Cleaned) -> None:
    cleaned.create("t")
    cleaned.fill("t")
    cleaning = slowly(cleaned)
    wait_until(lambda: process_of(cleaning) is not None)
    pid = process_of(cleaning)
    assert pid is not None
    cleaned.run(cleaning.stop())
    assert not is_running(pid)
    assert not is_written(cleaned.log("t").directory)


@pytest.mark.parametrize("inline", [False, True])
def test_a_corrupt_log_is_left_alone_and_that_is_said_once(
    cleaned: Cleaned, caplog: pytest.LogCaptureFixture, inline: bool
) -> None:
    for topic in ("bad", "good"):
        cleaned.create(topic)
        cleaned.fill(topic)
    bad = cleaned.log("bad")
    path = bad.segments[1].path(".log")
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.write_bytes(raw)
    before = len(bad.segments)
    cleaner = cleaned.cleaner(inline=inline)
    for _ in range(4):
        cleaned.run(cleaner.clean_once())
    cleaned.run(cleaner.end())
    assert len(bad.segments) == before
    assert cleaned.log("good").first_dirty_offset > 30
    logged = [each.getMessage() for each in caplog.records if each.levelno == logging.ERROR]
    assert len(logged) == 1
    assert logged[0].startswith("cannot compact bad-0")
    assert "fails its checksum" in logged[0]


def test_more_keys_than_memory_take_more_passes(cleaned: Cleaned) -> None:
    """log.cleaner.dedupe.buffer.size"""
    cleaned.create("t")
    cleaned.fill("t", 60)
    cleaner = cleaned.cleaner(log_cleaner_dedupe_buffer_size=str(4 * BYTES_PER_KEY))
    passes = 0
    while cleaned.run(cleaner.clean_once()):
        passes += 1
    assert passes > 3
    newest = {record.key: record.value for record in cleaned.read("t")}
    assert newest == {b"k%d" % i: b"value %d" % (50 + i) for i in range(10)}


def test_what_cannot_be_written_is_tried_again(
    cleaned: Cleaned, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The interpreter cannot be started: said once, and no reason to stop anything."""
    cleaned.create("t")
    cleaned.fill("t")
    cleaner = cleaned.cleaner(inline=False)
    with monkeypatch.context() as patch:
        patch.setattr("sys.executable", "/no/such/python")
        assert cleaned.run(cleaner.clean_once()) is False
        assert cleaned.run(cleaner.clean_once()) is False
    logged = [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]
    assert len(logged) == 1 and "cannot start the cleaner process" in logged[0]
    assert cleaned.run(cleaner.clean_once()) is True
    cleaned.run(cleaner.end())


def test_what_goes_wrong_in_one_look_does_not_end_the_cleaning(
    cleaned: Cleaned,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is said with all that is known of it, and looked again."""
    chatty = tmp_path / "site" / "sitecustomize.py"
    chatty.parent.mkdir()
    chatty.write_text("print('hello', flush=True)\n")
    monkeypatch.setenv("PYTHONPATH", str(chatty.parent))
    cleaned.create("t")
    cleaned.fill("t")
    cleaning = cleaned.cleaning(log_cleaner_backoff_ms="100")
    wait_until(lambda: "selecting a log to compact failed" in caplog.text)
    assert "JSONDecodeError" in caplog.text
    chatty.write_text("")
    wait_until(lambda: cleaned.log("t").first_dirty_offset > 30)
    cleaned.run(cleaning.stop())


def test_st_10_a_checkpoint_that_cannot_be_read_takes_its_directory_offline(
    tmp_path: Path,
) -> None:
    """As for Kafka's cleaner; the logs in the others are cleaned."""
    directories = [tmp_path / "a", tmp_path / "b"]
    config = {"log.cleaner.enable": "false", "log.dirs": ",".join(map(str, directories))}
    with Broker(config=config) as broker, RawClient(broker.bootstrap_servers) as client:
        cleaned = Cleaned(broker, client)
        for topic in ("bad", "good"):
            cleaned.create(topic)
            cleaned.fill(topic)
        checkpoint = cleaned.log("bad").directory.with_name("cleaner-offset-checkpoint")
        checkpoint.unlink()
        checkpoint.mkdir()
        cleaner = cleaned.cleaner()
        cleaned.run(cleaner.clean_once())
        assert cleaned.server.node.replicas.offline == {TopicPartition("bad", 0)}
        assert cleaned.log("good").first_dirty_offset > 30
        cleaned.run(cleaner.end())


async def abort_behind_an_open_transaction(log: Log) -> None:
    """In segments that cannot be cleaned for as long as that is open."""
    now_ms = 1_700_000_000_000
    log.roll()
    for producer_id in (8, 9):
        builder = BatchBuilder(0, producer_id, 0, 0, is_transactional=True)
        builder.append(now_ms, b"k", b"")
        log.append(memoryview(bytearray(builder.build())), 0, now_ms)
    marker = build_marker(Marker(0, now_ms, ABORT, 0), 9, 0)
    log.append_control(memoryview(bytearray(marker)), 0, now_ms)
    log.roll()


def test_a_log_whose_index_of_transactions_is_cut_holds_up_no_other(
    cleaned: Cleaned, caplog: pytest.LogCaptureFixture
) -> None:
    """It is left alone, like one with a corrupt batch."""
    for topic in ("bad", "good"):
        cleaned.create(topic)
        cleaned.fill(topic)
    cleaned.run(abort_behind_an_open_transaction(cleaned.log("bad")))
    os.truncate(cleaned.log("bad").segments[-2].path(".txnindex"), 0)
    cleaner = cleaned.cleaner()
    for _ in range(4):
        cleaned.run(cleaner.clean_once())
    cleaned.run(cleaner.end())
    assert cleaned.log("good").first_dirty_offset > 30
    logged = [each.getMessage() for each in caplog.records if each.levelno == logging.ERROR]
    assert len(logged) == 1
    assert logged[0].startswith("cannot compact bad-0")
