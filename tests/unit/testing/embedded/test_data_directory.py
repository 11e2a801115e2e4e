"""A temporary directory goes with its owner, a given one stays; its files are not synced."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest

from barnabas import Broker
from barnabas.testing.embedded.data_directory import DataDirectory, UnsyncedFiles


def test_tk_1_a_temporary_directory_is_made_once_and_removed() -> None:
    directory = DataDirectory(None)
    assert directory.path is None and directory.is_temporary
    made = directory.make()
    assert made.is_dir() and directory.make() == made == directory.path
    directory.remove()
    directory.remove()
    assert not made.exists() and directory.path is None
    again = directory.make()
    assert again.is_dir() and again != made
    directory.remove()


def test_tk_1_nobody_needs_to_remove_it() -> None:
    directory = DataDirectory(None)
    made = directory.make()
    del directory
    gc.collect()
    assert not made.exists()


def test_tk_1_a_given_directory_stays(tmp_path: Path) -> None:
    directory = DataDirectory(tmp_path)
    assert directory.make() == tmp_path and not directory.is_temporary
    directory.remove()
    del directory
    gc.collect()
    assert tmp_path.is_dir()


def test_tk_6_nothing_is_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", refuse)
    files = UnsyncedFiles()
    files.write(tmp_path / "file", b"written", sync=True)
    files.sync(tmp_path)
    assert (tmp_path / "file").read_bytes() == files.read(tmp_path / "file") == b"written"


@pytest.mark.parametrize("is_temporary", [True, False])
def test_tk_6_temporary_logs_are_not_synced_and_others_are(
    is_temporary: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The metadata's journal is, in both."""
    synced = []
    fsync = os.fsync

    def noted(descriptor: int) -> None:
        synced.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    with Broker(None if is_temporary else tmp_path) as broker:
        broker.topic("t").send(b"a")
    assert ("00000000000000000000.log" in synced) is not is_temporary


def refuse(descriptor: int) -> None:
    raise AssertionError("it is synced")
