"""SP-3: the pipeline's own vacuum, where there is something older than a week to take away."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from barnabas_pipeline import tables as pipeline_tables
from barnabas_pipeline.behaviour.definition import BEHAVIOUR
from tests.kit.pipeline.delta_tables import LONG_AGO_S, data_files, outlive_retention
from tests.kit.pipeline.table_batches import (
    ALL,
    HITS,
    Doomed,
    Killed,
    contents,
    snapshot_of,
    tables_in,
    write,
)


def test_sp_3_a_reader_of_all_tables_beside_a_vacuum_of_old_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SP-3: files of last week go, and a snapshot of before the merge is read to its end."""
    monkeypatch.setattr(pipeline_tables, "_COMPACT_EVERY", 6)
    tables, now_s = tables_in(tmp_path), time.time
    with monkeypatch.context() as then:
        then.setattr(time, "time", lambda: now_s() - LONG_AGO_S)
        write(tables, range(3))
        replaced = data_files(tmp_path) - data_files(tmp_path / "control")
        tables.tidy()
    write(tables, range(3, 5))  # their control row names what was merged
    outlive_retention(tmp_path)
    pinned, expected = snapshot_of(tmp_path), contents(tmp_path)
    write(tables, [5])
    assert not replaced & data_files(tmp_path), "replaced last week"
    assert pinned.frame("events").height == HITS * 5
    for name in ALL:
        assert pinned.frame(name).height == sum(expected[name].values()), name
    write(tables, [6])
    assert snapshot_of(tmp_path).frame("events").height == HITS * 7


def test_sp_3_killed_twice_behind_the_merge_with_a_week_between(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SP-3: until the control table names what was merged, nothing that it names is taken away,
    however long ago it was replaced."""
    monkeypatch.setattr(pipeline_tables, "_COMPACT_EVERY", 4)
    now_s = time.time
    with monkeypatch.context() as then:
        then.setattr(time, "time", lambda: now_s() - LONG_AGO_S)
        write(tables_in(tmp_path), range(3))
        before = contents(tmp_path)
        with pytest.raises(Killed):
            write(Doomed(tmp_path, BEHAVIOUR), [3])
    outlive_retention(tmp_path)
    with pytest.raises(Killed):
        write(Doomed(tmp_path, BEHAVIOUR), [3])
    assert contents(tmp_path) == before
    write(tables_in(tmp_path), range(3, 5))
    assert snapshot_of(tmp_path).frame("events").height == HITS * 5
