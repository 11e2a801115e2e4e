"""Positions as records of a topic, and back."""

from __future__ import annotations

import pytest

from barnabas.errors import CorruptData
from barnabas_collector.file_progress import new_file
from barnabas_collector.passed_over import PassedOver
from barnabas_collector.positions import Positions
from barnabas_collector.recognition import Found


def test_what_is_taken_is_loaded_again() -> None:
    positions = Positions("here")
    file = new_file("/a.log", b"first\n", 0)
    positions.pass_over("/a.log", [PassedOver.of(Found(1, 7, None, b"old\n"))])
    positions.save(file)
    positions.save(file._replace(position=6, line=2))
    records = positions.take_changes()
    assert len(records) == 2 and not positions.has_changed and positions.take_changes() == []
    again, other = Positions("here"), Positions("elsewhere")
    for key, value in records:
        again.load(key, value)
        other.load(key, value)
    assert again.files == [file._replace(position=6, line=2)]
    assert again.passed_over("/a.log") == [PassedOver.of(Found(1, 7, None, b"old\n"))]
    assert again.knows("/a.log") and not again.has_changed
    assert other.files == [] and not other.knows("/a.log")
    again.save(again.files[0])
    assert not again.has_changed


@pytest.mark.parametrize(
    ("key", "value"),
    [(None, b"{}"), (b"[]", b"{}"), (b'["here", "file", "1"]', b'{"path": 1}'), (b"\xff", b"")],
)
def test_what_no_collector_wrote_is_refused(key: bytes | None, value: bytes) -> None:
    with pytest.raises(CorruptData, match="barnabas-collector-positions"):
        Positions("here").load(key, value)


def test_what_is_forgotten_is_not_loaded_again() -> None:
    positions, again = Positions("here"), Positions("here")
    file = new_file("/a.log", b"first\n", 0)
    positions.pass_over("/a.log", [])
    positions.save(file)
    records = positions.take_changes()
    positions.forget(file.file_id)
    positions.forget_log("/a.log")
    assert positions.files == [] and not positions.knows("/a.log")
    tombstones = positions.take_changes()
    assert [value for _, value in tombstones] == [None, None]
    for key, value in records + tombstones:
        again.load(key, value)
    assert again.files == [] and not again.knows("/a.log") and not again.has_changed
