"""A temporary directory goes with its owner, a given one stays."""

from __future__ import annotations

import gc
from pathlib import Path

from barnabas.testing.embedded.data_directory import DataDirectory


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
