"""A cluster on one machine: what is kept of it, and what its brokers are started with."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import pytest

from barnabas.cli.cluster.layout import (
    HOST,
    CannotRun,
    existing_plan,
    make_plan,
    profile,
    read_plan,
    write_plan,
)
from barnabas.cli.server.pid_file import claim, process_began_ticks
from barnabas.config import BrokerConfig
from tests.kit.processes.broker_process import free_port


def test_it_has_three_brokers_on_free_ports(tmp_path: Path) -> None:
    first = free_port()
    with socket.create_server((HOST, first)):
        plan = make_plan(tmp_path, None, {}, first)
    assert list(plan.ports) == [1, 2, 3]
    used = [*plan.ports.values(), plan.zookeeper_port]
    assert len(set(used)) == 4
    assert min(used) > first


def test_a_restart_finds_the_same_ports_and_the_configs_that_are_given_now(tmp_path: Path) -> None:
    plan = make_plan(tmp_path / "new", 2, {"num.partitions": "6"}, free_port())
    write_plan(plan)
    assert existing_plan(tmp_path / "new") == plan
    again = make_plan(tmp_path / "new", None, {"log.retention.hours": "1"}, free_port())
    assert (again.ports, again.zookeeper_port) == (plan.ports, plan.zookeeper_port)
    assert again.overrides == {"log.retention.hours": "1"}


def test_it_may_grow_and_not_shrink(tmp_path: Path) -> None:
    plan = make_plan(tmp_path, 2, {}, free_port())
    write_plan(plan)
    grown = make_plan(tmp_path, 4, {}, plan.ports[1])
    assert {id_: grown.ports[id_] for id_ in (1, 2)} == plan.ports
    assert len({*grown.ports.values(), grown.zookeeper_port}) == 5
    with pytest.raises(CannotRun, match=r"has 2 brokers, .* with only 1: use another --dir"):
        make_plan(tmp_path, 1, {}, free_port())


def test_each_broker_gets_configs_of_its_own_and_the_common_ones(tmp_path: Path) -> None:
    plan = make_plan(tmp_path, 3, {"min.insync.replicas": "1"}, free_port())
    config = BrokerConfig({**plan.configs(2), "log.dirs": str(plan.broker_directory(2))})
    assert config.int("broker.id") == 2
    assert config.str("listeners") == f"PLAINTEXT://{plan.address(2)}"
    assert config.str("zookeeper.connect") == f"127.0.0.1:{plan.zookeeper_port}"
    assert config.int("offsets.topic.replication.factor") == 3
    assert config.int("min.insync.replicas") == 1, "the command line wins"
    assert plan.bootstrap_servers == ",".join(plan.address(id_) for id_ in (1, 2, 3))


def test_each_broker_has_a_port_for_its_metrics(tmp_path: Path) -> None:
    """RE-14: the one that is given and the next ones, which nothing else of the cluster takes."""
    first = free_port()
    plan = make_plan(tmp_path, 3, {"barnabas.metrics.port": str(first + 1)}, first)
    metrics = [plan.configs(broker_id)["barnabas.metrics.port"] for broker_id in (1, 2, 3)]
    assert metrics == [str(first + 1), str(first + 2), str(first + 3)]
    assert plan.metrics_address(3) == f"{HOST}:{first + 3}"
    assert not {*plan.ports.values(), plan.zookeeper_port} & set(map(int, metrics))
    for off in ({}, {"barnabas.metrics.port": "0"}):
        plan = plan._replace(overrides=off)
        assert plan.metrics_address(2) == ""
        assert plan.configs(2).get("barnabas.metrics.port", "0") == "0"


@pytest.mark.parametrize(
    ("brokers", "replicas", "min_isr"),
    [(1, "1", "1"), (2, "2", "1"), (3, "3", "2"), (5, "3", "2")],
)
def test_one_of_three_may_die(brokers: int, replicas: str, min_isr: str) -> None:
    """With fewer than three brokers the death of one must not stop who writes with acks=all."""
    configs = profile(brokers)
    assert configs["default.replication.factor"] == replicas
    assert configs["transaction.state.log.replication.factor"] == replicas
    assert configs["min.insync.replicas"] == configs["transaction.state.log.min.isr"] == min_isr


@pytest.mark.parametrize("key", ["broker.id", "listeners", "log.dirs", "zookeeper.connect"])
def test_what_every_broker_has_for_itself_cannot_be_given(key: str, tmp_path: Path) -> None:
    with pytest.raises(CannotRun, match=f"--override {key}: the cluster sets this"):
        make_plan(tmp_path, 3, {key: "x"}, free_port())


@pytest.mark.parametrize(
    ("stored", "complaint"),
    [
        ("{", "is not JSON"),
        ("[]", "does not describe a cluster"),
        ('{"version": 2}', "has an unknown version: 2"),
        ('{"version": 1, "zookeeper_port": "x"}', "does not describe a cluster"),
        ('{"version": 1, "zookeeper_port": 1, "ports": [], "overrides": {}}', "does not describe"),
    ],
)
def test_a_file_that_is_not_ours_gets_a_complaint(
    stored: str, complaint: str, tmp_path: Path
) -> None:
    (tmp_path / "cluster.json").write_text(stored)
    with pytest.raises(CannotRun, match=complaint):
        read_plan(tmp_path)


def test_where_no_cluster_is_nothing_can_be_stopped(tmp_path: Path) -> None:
    with pytest.raises(CannotRun, match=r"no cluster in .*: use --dir to choose another"):
        existing_plan(tmp_path)


def test_who_runs_is_known_by_the_files_that_they_leave(tmp_path: Path) -> None:
    plan = make_plan(tmp_path, 2, {}, free_port())
    assert plan.running() == {}
    assert claim(plan.broker_directory(2), "x")
    ended = plan.broker_directory(1)
    ended.mkdir()
    (ended / "barnabas.pid").write_text(f"{os.getpid()}\n1\nx\n")  # another process had this id
    assert {name: each.pid for name, each in plan.running().items()} == {"broker 2": os.getpid()}
    assert process_began_ticks(os.getpid()) != 1


def test_the_file_can_be_read_by_people(tmp_path: Path) -> None:
    plan = make_plan(tmp_path, 1, {"num.partitions": "6"}, free_port())
    write_plan(plan)
    assert json.loads((tmp_path / "cluster.json").read_text()) == {
        "version": 1,
        "zookeeper_port": plan.zookeeper_port,
        "ports": {"1": plan.ports[1]},
        "overrides": {"num.partitions": "6"},
        "secure": False,
        "zookeeper_connect": "",
    }
    assert not (tmp_path / "cluster.new").exists()
