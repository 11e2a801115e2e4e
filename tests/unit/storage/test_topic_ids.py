"""The topic ids of new logs, without a wait for each one's own file (KIP-516)."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from barnabas.config import LogConfig
from barnabas.errors import CorruptData
from barnabas.storage.files import OsFiles
from barnabas.storage.partition_metadata import FILE_NAME as METADATA
from barnabas.storage.partition_metadata import settle_topic_id
from barnabas.storage.store import LogStore
from barnabas.storage.topic_ids import FILE_NAME, TopicIds
from barnabas.types import TopicPartition
from simulation.whole.files import SimFiles
from tests.kit.set_clock import SetClock
from tests.kit.storage.disk import WatchedFiles, append, batch

NAMES = [TopicPartition("t", number) for number in range(5)]
ID = bytes(range(16))
OTHER = bytes(range(1, 17))
LOGS = Path("/d/logs")


def opened(files: SimFiles) -> LogStore:
    return LogStore.open(files.mounted(), [LOGS], config=LogConfig(), broker_id=0, now_ms=0)


@pytest.mark.thorough
def test_zk_4_a_power_cut_leaves_no_records_without_their_topic() -> None:
    """They would be served as any topic's that has the name by then."""
    for seed in range(60):
        files = SimFiles(SetClock(), [LOGS])
        store = opened(files)
        for name in NAMES:
            store.make(name, ID, LogConfig())
        files.sync(LOGS)
        store.topic_ids.write()
        for name in NAMES:
            append(store.logs[name], batch(3))
        files.power_cut(Random(seed))
        store = opened(files)
        assert {log.topic_id for log in store.logs.values()} == {ID}, seed
        files.power_cut(Random(seed))
        assert {log.topic_id for log in opened(files).logs.values()} == {ID}, seed


def test_a_log_that_was_not_made_altogether_has_no_topic_or_its_own() -> None:
    for seed in range(60):
        files = SimFiles(SetClock(), [LOGS])
        store = opened(files)
        store.make(NAMES[0], ID, LogConfig())
        files.power_cut(Random(seed))
        for log in opened(files).logs.values():
            assert log.topic_id in (None, ID)
            assert log.log_end_offset == 0


def test_many_logs_are_made_with_one_wait_for_the_disk(tmp_path: Path) -> None:
    files = WatchedFiles()
    store = LogStore.open(files, [tmp_path], config=LogConfig(), broker_id=0, now_ms=0)
    files.synced.clear()
    for number in range(50):
        store.make(TopicPartition("t", number), ID, LogConfig())
    assert files.synced == []
    store.topic_ids.write()
    assert len(files.synced) == 1
    store.topic_ids.write()
    assert len(files.synced) == 1, "nothing new was made"
    store.make(TopicPartition("t", 50), ID, LogConfig())
    store.topic_ids.write()
    assert files.synced[1:] == [FILE_NAME]
    store.close()


def test_the_last_word_on_a_partition_counts(tmp_path: Path) -> None:
    ids = TopicIds(OsFiles(), tmp_path)
    assert ids.read() == {}
    ids.add({NAMES[0]: ID, NAMES[1]: ID}, {})
    ids.add({NAMES[0]: OTHER}, {})
    assert ids.read() == {NAMES[0]: OTHER, NAMES[1]: ID}
    with (tmp_path / FILE_NAME).open("ab") as file:
        file.write(b"t 2 AAEC\nnonsense\n\xff\nt 3 AAECAwQFBgcICQoLDA0O")
    assert ids.read() == {NAMES[0]: OTHER, NAMES[1]: ID}


def test_the_file_does_not_grow_with_what_is_deleted_again(tmp_path: Path) -> None:
    ids = TopicIds(OsFiles(), tmp_path)
    for number in range(1_500):
        name = TopicPartition("t", number)
        ids.add({name: ID}, {name: ID})
    assert len((tmp_path / FILE_NAME).read_text().splitlines()) < 1_100


def test_what_an_empty_log_lost_is_any_topic_s_and_what_another_lost_is_damage(
    tmp_path: Path,
) -> None:
    (tmp_path / METADATA).write_text("")
    files = OsFiles()
    assert settle_topic_id(files, tmp_path, None, is_empty=True) is None
    with pytest.raises(CorruptData):
        settle_topic_id(files, tmp_path, None, is_empty=False)
    assert settle_topic_id(files, tmp_path, ID, is_empty=False) == ID
    assert settle_topic_id(files, tmp_path, None, is_empty=False) == ID, "it is written again"
    assert settle_topic_id(files, tmp_path, OTHER, is_empty=False) == ID, "its own file counts"
