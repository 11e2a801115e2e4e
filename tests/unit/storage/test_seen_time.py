"""The newest wall time seen, as it is kept in the log directories (ST-6)."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.storage.files import OsFiles
from barnabas.storage.seen_time import FILE_NAME, read_seen_ms, write_seen_ms


def test_the_newest_of_all_directories_counts(tmp_path: Path) -> None:
    directories = [tmp_path / "a", tmp_path / "b"]
    assert read_seen_ms(OsFiles(), directories) is None
    for number, each in enumerate(directories, 5):
        each.mkdir()
        write_seen_ms(OsFiles(), [each], number)
    assert read_seen_ms(OsFiles(), directories) == 6
    write_seen_ms(OsFiles(), directories, 4)
    assert read_seen_ms(OsFiles(), directories) == 4, "an earlier time replaces a later one"


@pytest.mark.parametrize("content", [b"", b"-5", b"17 ", b"\xff\x00", b"9" * 16, "²".encode()])
def test_a_damaged_time_is_ignored(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, content: bytes
) -> None:
    (tmp_path / FILE_NAME).write_bytes(content)
    assert read_seen_ms(OsFiles(), [tmp_path]) is None
    assert f"{tmp_path / FILE_NAME} is damaged" in caplog.text
