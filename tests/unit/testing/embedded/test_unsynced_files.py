"""What is written is there for this and every other process, and no disk is waited for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from barnabas import Broker
from barnabas.testing.embedded.unsynced_files import UnsyncedFiles


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
