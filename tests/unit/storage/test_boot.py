"""How a log directory was left: only the death of the machine takes what was not flushed."""

from __future__ import annotations

from pathlib import Path

from barnabas.config import LogConfig
from barnabas.storage.store import LogStore
from tests.kit.storage.disk import QuickFiles

BOOT, NEXT_BOOT = b"one", b"two"


def opened(directory: Path) -> LogStore:
    return LogStore.open(QuickFiles(), [directory], config=LogConfig(), broker_id=1, now_ms=0)


def test_a_directory_is_whole_after_a_clean_stop_whatever_the_boot(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.begins_whole(BOOT)
    store.directories.on_loss_known(BOOT)
    store.close()
    store = opened(tmp_path)
    assert store.begins_whole(NEXT_BOOT)
    store.close()


def test_a_kill_takes_nothing_while_the_machine_runs_on(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.begins_whole(BOOT)
    store.directories.on_loss_known(BOOT)
    store.release()  # as a kill -9
    store = opened(tmp_path)
    assert store.begins_whole(BOOT)
    store.release()


def test_a_crash_of_the_machine_may_have_taken_what_was_not_flushed(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.begins_whole(BOOT)
    store.directories.on_loss_known(BOOT)
    store.release()
    store = opened(tmp_path)
    assert not store.begins_whole(NEXT_BOOT)
    store.release()
    store = opened(tmp_path)
    assert not store.begins_whole(NEXT_BOOT), "the cluster does not know of it"
    store.close()
    store = opened(tmp_path)
    assert not store.begins_whole(NEXT_BOOT), "nor by a stop that would be clean else"
    store.directories.on_loss_known(NEXT_BOOT)
    store.release()
    store = opened(tmp_path)
    assert store.begins_whole(NEXT_BOOT)
    store.release()


def test_an_unknown_boot_and_an_empty_disk_count_as_lost(tmp_path: Path) -> None:
    store = opened(tmp_path)
    assert not store.begins_whole(b"")
    store.release()
    store = opened(tmp_path)
    assert not store.begins_whole(b"")
    store.release()
    store = opened(tmp_path / "new")
    assert not store.begins_whole(BOOT)
    store.release()
