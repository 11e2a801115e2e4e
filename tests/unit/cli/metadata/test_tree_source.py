"""Where `metadata` looks, and what it says where nothing is."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.cli.main import EXIT_FAILURE, main
from barnabas.cli.metadata.tree_source import TreeSource
from barnabas.errors import ConfigError


def test_a_directory_without_a_tree_says_how_another_is_named(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """UX-4: a broker of a cluster keeps no tree in its directory."""
    assert main(["metadata", "ls", "--dir", str(tmp_path)]) == EXIT_FAILURE
    stderr = capfd.readouterr().err
    assert stderr.count("\n") == 1 and f"{tmp_path} has no barnabas-metadata.journal" in stderr
    assert stderr.endswith(
        "--dir names another one, --zookeeper-connect the ZooKeeper of a cluster\n"
    )


def test_somebody_at_a_terminal_is_not_kept_waiting(tmp_path: Path) -> None:
    """UX-4: a broker's patience is for its start; less of it is obeyed."""
    file = tmp_path / "server.properties"
    file.write_text("zookeeper.connection.timeout.ms=18000\n")
    settings = TreeSource("zk:2181", str(file)).required_zookeeper()
    assert (settings.first_timeout_ms, settings.session_timeout_ms) == (2_400, 6_000)
    file.write_text("zookeeper.connection.timeout.ms=500\n")
    assert TreeSource("zk:2181", str(file)).required_zookeeper().first_timeout_ms == 500


def test_the_file_of_a_broker_that_cannot_start_can_be_looked_at_with(tmp_path: Path) -> None:
    """SE-6: a command serves no client; but it keeps to what is said of its own connection."""
    file = tmp_path / "server.properties"
    file.write_text("create.topic.policy.class.name=a.B\nzookeeper.connect=zk:2181\n")
    assert TreeSource(None, str(file)).required_zookeeper().connect == "zk:2181"
    file.write_text("zookeeper.ssl.crl.enable=true\nzookeeper.connect=zk:2181\n")
    with pytest.raises(ConfigError, match=r"zookeeper\.ssl\.crl\.enable"):
        TreeSource(None, str(file)).required_zookeeper()
