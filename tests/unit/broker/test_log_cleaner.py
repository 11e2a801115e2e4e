"""ST-8: a cleaner says where it will leave gaps, before it does."""

from __future__ import annotations

import shutil
from itertools import pairwise
from pathlib import Path

import pytest

from barnabas.config import LogConfig
from barnabas.storage.files import OsFiles
from barnabas.storage.gaps import FILE_NAME
from barnabas.storage.store import LogStore
from barnabas.types import TopicPartition
from tests.unit.broker import test_cleaning
from tests.unit.broker.test_cleaning import Cleaned
from tests.unit.storage.disk import read

cleaned = test_cleaning.cleaned


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
