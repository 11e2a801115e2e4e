"""The ZooKeeper server names a port that is in use."""

from __future__ import annotations

from pathlib import Path

from tests.kit.processes.own_zookeeper_process import OwnZooKeeperProcess, own_zookeeper


def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    with own_zookeeper(tmp_path / "first") as first:
        second = OwnZooKeeperProcess(tmp_path / "second")
        second.port = first.port
        assert second.refuse().endswith(
            f"port {first.port} is in use: stop the process that uses it, or use --port\n"
        )
