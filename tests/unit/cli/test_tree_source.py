"""Where `metadata` looks, and what it says where nothing is."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.cli.main import EXIT_FAILURE, main


def test_a_directory_without_a_tree_says_how_another_is_named(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """UX-4: a broker of a cluster keeps no tree in its directory."""
    assert main(["metadata", "ls", "--dir", str(tmp_path)]) == EXIT_FAILURE
    told = capfd.readouterr().err
    assert told.count("\n") == 1 and f"{tmp_path} has no barnabas-metadata.journal" in told
    assert told.endswith(
        "--dir names another one, --zookeeper-connect the ZooKeeper of a cluster\n"
    )
