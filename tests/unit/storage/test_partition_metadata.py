"""The topic id beside a partition's data."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.errors import CorruptData
from barnabas.storage.files import OsFiles
from barnabas.storage.partition_metadata import read_topic_id, write_topic_id


def test_st_1_it_has_kafkas_bytes(tmp_path: Path) -> None:
    write_topic_id(OsFiles(), tmp_path, bytes(range(16)))
    path = tmp_path / "partition.metadata"
    assert path.read_text() == "version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"
    assert read_topic_id(OsFiles(), tmp_path) == bytes(range(16))


def test_old_kafkas_wrote_none(tmp_path: Path) -> None:
    assert read_topic_id(OsFiles(), tmp_path) is None


@pytest.mark.parametrize(
    "text", ["", "version: 0", "version: 0\ntopic_id: AAEC", "topic_id: AAECAwQFBgcICQoLDA0ODw"]
)
def test_a_malformed_file_is_corrupt_data(tmp_path: Path, text: str) -> None:
    (tmp_path / "partition.metadata").write_text(text)
    with pytest.raises(CorruptData, match=r"partition\.metadata"):
        read_topic_id(OsFiles(), tmp_path)
