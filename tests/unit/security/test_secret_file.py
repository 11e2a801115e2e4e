"""Files that only their owner can read."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.security.secret_file import write_secret


def test_an_error_names_the_file_and_not_the_temporary_one(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "tree.json"
    with pytest.raises(FileNotFoundError) as caught:
        write_secret(path, b"secret")
    assert caught.value.filename == str(path)
    write_secret(tmp_path / "tree.json", b"secret")
    assert (tmp_path / "tree.json").stat().st_mode & 0o777 == 0o600
