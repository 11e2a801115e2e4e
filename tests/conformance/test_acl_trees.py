"""SE-4: rules in ZooKeeper are those of a real Kafka 3.9.1, whoever wrote them.

A broker of ours and one of Kafka's are one cluster: its rules are in one tree. Ours starts first,
and is started again at the end.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from typing import NamedTuple

import pytest
from kazoo.client import KazooClient  # type: ignore[import-untyped]

from barnabas.protocol import api as apis
from barnabas.security import acl_nodes
from barnabas.security.acl import CLUSTER_NAME, Operation, ResourceType
from barnabas.security.acl_binding import (
    AclBinding,
    AclEntry,
    Pattern,
    PatternType,
    PermissionType,
)
from tests.kit.acls.acl_brokers import AclBroker, broker, with_users
from tests.kit.acls.user_cells import USER_TOPICS, shown_operations, user_rules
from tests.kit.clients.kafka_process import KafkaProcess
from tests.kit.processes.broker_process import BrokerProcess, free_port
from tests.kit.processes.zookeeper_process import zookeeper_process
from tests.kit.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.foreign]

_CHROOT = "/shared"
_PRINCIPALS = (
    "User:alice",
    "User:*",
    "Group:some",
    "User:CN=c,O=d e",
    "User:a:b",
    'User:"quoted" \\ and / slashed',
    "User:Zoë–雪",
    "User:{}[]",
)
_HOSTS = ("*", "127.0.0.2", "0:0:0:0:0:0:0:1", "no address")
_NAMES = ("plain", "with space", "*", "Zoë-雪", "a:b", '"', "%2F", "a" * 249)


class Cluster(NamedTuple):
    """Its two brokers, and the tree."""

    ours: AclBroker
    kafka: AclBroker
    process: BrokerProcess
    tree: KazooClient


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    directory = tmp_path_factory.mktemp("trees")
    with zookeeper_process(directory) as zookeeper, ExitStack() as running:
        processes, ports = [], []
        for broker_id, kind in enumerate(("ours", "kafka"), 1):
            one = broker(directory / kind, zookeeper, _CHROOT, f"broker.id={broker_id}")
            ports.append(free_port())
            settings = with_users(one.port, ports[-1])
            one.options += (*settings, "super.users=User:root;User:ANONYMOUS")
            processes.append(one)
        process = processes[0]
        process.start()
        running.callback(process.kill)
        ours = AclBroker(process.port, ports[0], process.log)
        running.callback(lambda: ours.close())
        _add(ours, rules_of("from ours at the start"))
        theirs = KafkaProcess(processes[1])
        running.callback(theirs.kill)
        theirs.wait_until_ready()
        kafka = AclBroker(processes[1].port, ports[1], theirs.log)
        running.callback(kafka.close)
        tree = KazooClient(hosts=zookeeper.connect + _CHROOT)
        tree.start()
        running.callback(tree.close)
        running.callback(tree.stop)
        yield Cluster(ours, kafka, process, tree)


def rules_of(writer: str) -> set[AclBinding]:
    """Rules of each kind of resource, pattern, operation and permission, with odd texts."""
    rules = set()
    types = [each for each in ResourceType if each is not ResourceType.ANY]
    operations = [each for each in Operation if each is not Operation.ANY]
    number = 0
    for resource_type in types:
        for pattern_type in (PatternType.LITERAL, PatternType.PREFIXED):
            for odd in _NAMES:
                name = odd if odd == "*" else f"{writer} {odd}"[:249]
                if resource_type is ResourceType.CLUSTER:
                    name = CLUSTER_NAME
                is_shared = name in ("*", CLUSTER_NAME)
                entry = AclEntry(
                    _PRINCIPALS[number % len(_PRINCIPALS)],
                    f"{writer} {number}" if is_shared else _HOSTS[number % len(_HOSTS)],
                    operations[number % len(operations)],
                    (PermissionType.ALLOW, PermissionType.DENY)[number // 2 % 2],
                )
                rules.add(AclBinding(Pattern(resource_type, name, pattern_type), entry))
                number += 1
    return rules


def _add(one: AclBroker, rules: Iterable[AclBinding]) -> None:
    creations = [
        {
            "resource_type": pattern.resource_type,
            "resource_name": pattern.name,
            "resource_pattern_type": pattern.pattern_type,
            "principal": entry.principal,
            "host": entry.host,
            "operation": entry.operation,
            "permission_type": entry.permission,
        }
        for pattern, entry in rules
    ]
    answer = one.ask(apis.CREATE_ACLS, 3, {"creations": creations})
    assert {each.error_code for each in answer.results} == {0}, answer


def _remove(one: AclBroker, rules: Iterable[AclBinding]) -> None:
    filters = [
        {
            "resource_type_filter": pattern.resource_type,
            "resource_name_filter": pattern.name,
            "pattern_type_filter": pattern.pattern_type,
            "principal_filter": entry.principal,
            "host_filter": entry.host,
            "operation": entry.operation,
            "permission_type": entry.permission,
        }
        for pattern, entry in rules
    ]
    answer = one.ask(apis.DELETE_ACLS, 3, {"filters": filters})
    assert {len(each.matching_acls) for each in answer.filter_results} == {1}, answer


def _described(one: AclBroker) -> set[AclBinding]:
    wanted = {
        "resource_type_filter": 1,
        "resource_name_filter": None,
        "pattern_type_filter": 1,
        "principal_filter": None,
        "host_filter": None,
        "operation": 1,
        "permission_type": 1,
    }
    answer = one.ask(apis.DESCRIBE_ACLS, 3, wanted)
    assert answer.error_code == 0, answer
    return {
        AclBinding(
            Pattern(
                ResourceType(resource.resource_type),
                resource.resource_name,
                PatternType(resource.pattern_type),
            ),
            AclEntry(
                acl.principal,
                acl.host,
                Operation(acl.operation),
                PermissionType(acl.permission_type),
            ),
        )
        for resource in answer.resources
        for acl in resource.acls
    }


def _check_described(one: AclBroker, rules: set[AclBinding]) -> None:
    found = _described(one)
    assert not found - rules, f"too many: {len(found - rules)}, such as {min(found - rules)}"
    assert not rules - found, f"missing: {len(rules - found)}, such as {min(rules - found)}"


def _decide_alike(cluster: Cluster) -> None:
    named = (*USER_TOPICS, *(pattern.name for pattern, _ in rules_of("from kafka")))
    topics = [each for each in dict.fromkeys(named) if each.isascii() and " " not in each]
    for cell in shown_operations(topics):
        assert cluster.ours.decide(cell) == cluster.kafka.decide(cell), cell


def test_se_4_kafka_reads_at_its_start_what_ours_has_written(cluster: Cluster) -> None:
    _check_described(cluster.ours, rules_of("from ours at the start"))
    _check_described(cluster.kafka, rules_of("from ours at the start"))
    _decide_alike(cluster)


@pytest.mark.parametrize("writer", ["ours", "kafka"])
def test_se_4_what_either_changes_reaches_the_other(cluster: Cluster, writer: str) -> None:
    """By a change node for each pattern, in Kafka's form."""
    one, other = cluster.ours, cluster.kafka
    if writer == "kafka":
        one, other = other, one
    before = _described(one)
    added = {*rules_of(f"from {writer}"), *user_rules()}
    _add(one, added)
    wait_until(lambda: _described(other) == before | added)
    _check_described(one, before | added)
    _decide_alike(cluster)
    gone = {*sorted(rules_of(f"from {writer}"))[::2], *user_rules()}
    _remove(other, gone)
    wait_until(lambda: _described(one) == before | (added - gone))
    _decide_alike(cluster)
    _remove(one, added - gone)
    wait_until(lambda: _described(other) == before)


def test_se_4_ours_reads_at_its_start_what_kafka_has_written(cluster: Cluster) -> None:
    written = {*rules_of("from kafka to a broker that is down"), *user_rules()}
    cluster.ours.close()
    cluster.process.stop()
    before = _described(cluster.kafka)
    _add(cluster.kafka, written)
    cluster.process.start()
    again = cluster.ours.again()
    _check_described(again, before | written)
    _decide_alike(cluster._replace(ours=again))
    again.close()


def test_se_4_nodes_are_alike_byte_by_byte(cluster: Cluster) -> None:
    """But for the order of the entries, which in Kafka is that of a hash."""
    patterns = {pattern for pattern, _ in _described(cluster.kafka)}
    for pattern in patterns:
        path = acl_nodes.pattern_path(pattern)
        data, _ = cluster.tree.get(path)
        entries = acl_nodes.decode_entries(path, data)
        own, theirs = json.loads(acl_nodes.encode_entries(entries)), json.loads(data)
        assert list(own) == list(theirs) == ["acls", "version"], data
        assert sorted(own["acls"], key=repr) == sorted(theirs["acls"], key=repr)
        if len(entries) == 1:
            assert acl_nodes.encode_entries(entries) == data
    assert len(patterns) > 100
    for root in acl_nodes.CHANGES.values():
        for name in cluster.tree.get_children(root):
            data, _ = cluster.tree.get(f"{root}/{name}")
            found = acl_nodes.decode_change(f"{root}/{name}", data)
            assert acl_nodes.encode_change(found) == data
