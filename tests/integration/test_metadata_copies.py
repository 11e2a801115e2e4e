"""ZS-4: a tree is the same in our ZooKeeper server, a real ZooKeeper and an embedded store."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from barnabas.cli.main import main
from tests.kit.processes.own_zookeeper_process import own_zookeeper
from tests.kit.processes.zookeeper_process import zookeeper_process

pytestmark = [pytest.mark.slow, pytest.mark.foreign]

TREE = "fixtures/kafka-3.9/zookeeper/single-running.json"


def exported(target: Path, *place: str) -> dict[str, Any]:
    """The tree at a place, without ZooKeeper's own nodes and the root, which is empty."""
    assert main(["metadata", "export", str(target), *place]) == 0
    tree = json.loads(target.read_text())
    assert not tree.pop("/")["data"]
    return {path: node for path, node in tree.items() if not path.startswith("/zookeeper")}


def test_zs_4_a_tree_is_copied_between_all_kinds(shared: Path, tmp_path: Path) -> None:
    """From Kafka's tree to Java's server, to ours, to the files of a broker, and back to ours."""
    logs = tmp_path / "logs"
    logs.mkdir()
    with (
        zookeeper_process(tmp_path / "java") as javas,
        own_zookeeper(tmp_path / "own") as own,
        own_zookeeper(tmp_path / "last") as last,
    ):
        file = shared / TREE
        found = []
        for number, place in enumerate(
            (
                ("--zookeeper-connect", javas.connect),
                ("--zookeeper-connect", own.connect),
                ("--dir", str(logs)),
                ("--zookeeper-connect", f"{last.connect}/kafka"),
            )
        ):
            where = place if place[0] == "--dir" else (*place, "--dir", str(logs))
            assert main(["metadata", "import", str(file), *where]) == 0
            file = tmp_path / f"{number}.json"
            found.append(exported(file, *place))
    assert found[0] == found[1] == found[2] == found[3]
    assert json.loads(found[0]["/cluster/id"]["data"])["id"]
    assert len(found[0]) > 20


def test_zs_4_one_command_copies_a_tree(
    shared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """From a real ZooKeeper to ours, to a broker's files, and back to a chroot of the real one."""
    logs = tmp_path / "logs"
    logs.mkdir()
    with (
        zookeeper_process(tmp_path / "java") as javas,
        own_zookeeper(tmp_path / "own") as own,
    ):
        first = ("--zookeeper-connect", javas.connect)
        assert main(["metadata", "import", str(shared / TREE), *first]) == 0
        chroot = f"{javas.connect}/again"
        for places in (
            ("--from-zookeeper", javas.connect, "--to-zookeeper", own.connect),
            ("--from-zookeeper", own.connect, "--to-dir", str(logs)),
            ("--from-dir", str(logs), "--to-zookeeper", chroot, "--to-dir", str(logs)),
        ):
            assert main(["metadata", "copy", *places]) == 0
        capsys.readouterr()
        again = ("metadata", "copy", "--from-dir", str(logs), "--to-zookeeper", own.connect)
        assert main(again) == 1
        assert "already has /brokers/topics" in capsys.readouterr().err
        assert exported(tmp_path / "a.json", *first) == exported(
            tmp_path / "b.json", "--zookeeper-connect", chroot
        )
