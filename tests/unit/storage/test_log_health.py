"""storage/log_health.py: which failures end a log, and what every later use of it raises."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from barnabas.storage.log_health import LogAbandoned, LogHealth

DIRECTORY = Path("/data/topic-0")


def test_a_sound_log_may_be_used() -> None:
    LogHealth().check(DIRECTORY)


def test_a_failed_log_names_its_directory_and_what_to_do() -> None:
    health = LogHealth()
    with pytest.raises(OSError, match="No space"), health.failing():
        raise OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(OSError, match=r"repair the disk and restart.*/data/topic-0") as raised:
        health.check(DIRECTORY)
    assert raised.value.errno == errno.EIO


@pytest.mark.parametrize("is_resumable", [True, False])
def test_without_descriptors_a_log_fails_only_in_the_middle_of_a_change(is_resumable: bool) -> None:
    health = LogHealth()
    with pytest.raises(OSError, match="Too many"), health.failing(is_resumable=is_resumable):
        raise OSError(errno.EMFILE, "Too many open files")
    assert health.is_failed is not is_resumable


def test_other_errors_do_not_fail_a_log() -> None:
    health = LogHealth()
    with pytest.raises(ValueError, match="ours"), health.failing():
        raise ValueError("ours")
    assert not health.is_failed


def test_an_abandoned_log_says_that_another_may_have_its_name() -> None:
    health = LogHealth()
    health.abandon()
    with pytest.raises(LogAbandoned, match="no longer in use"):
        health.check(DIRECTORY)
