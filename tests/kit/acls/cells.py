"""The matrix of requests: each API, with the sets of rules that it may depend on.

A cell is one request of one client. In the order given they change a broker in the same way, so
that of two brokers each answers them as the other, or decides otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from barnabas.protocol import api as apis
from barnabas.protocol.api import Api
from barnabas.security.acl import Operation, ResourceType
from tests.kit.acls.rules import (
    ADMIN,
    ALL_BUT,
    CLUSTER_CLIENTS,
    GROUP_SETS,
    ID_SETS,
    STRANGER,
    TOPIC_SETS,
    WILD,
    WILD_BUT_DESCRIBE,
    WRITERS,
    name,
)
from tests.kit.acls.security_requests import ALL_USERS, security_requests
from tests.kit.raw_client import batch

Values = dict[str, Any]

_CLIENTS = {
    "nothing": STRANGER,
    **{f"only {operation}": host for operation, host in CLUSTER_CLIENTS.items()},
    **{f"all but {operation}": host for operation, host in ALL_BUT.items()},
}
OPEN_TRANSACTION = name("x", "prefixed.open")
"""Has a partition of each topic of the kind `t`."""
_NO_ONE = {"id": 1, "epoch": 0}  # a producer that no coordinator knows


class Cell(NamedTuple):
    """One request; `what` names it in a finding."""

    host: str
    api: Api
    version: int
    values: Values
    what: str
    user: str = ""
    """Who has logged in, if anybody has."""


class Known(NamedTuple):
    """What differs from broker to broker."""

    topic_ids: Mapping[str, bytes]
    broker_id: int
    tokens: Mapping[str, bytes]
    """Delegation tokens by their owner."""


def all_cells(known: Known) -> Iterator[Cell]:
    yield from _of_cluster(known)
    yield from _of_topics(known)
    yield from _of_groups()
    yield from _of_ids()
    yield from _of_writers()
    yield from _of_lists()
    yield from _of_deletions(known)


# --- the cluster ---------------------------------------------------------------------------------


def _of_cluster(known: Known) -> Iterator[Cell]:
    for label, host in _CLIENTS.items():
        for api, version, values in _cluster_requests(known):
            yield Cell(host, api, version, values, f"client with {label} on the cluster")
    for operation in ("ALL", "ALTER", "DESCRIBE"):
        yield Cell(CLUSTER_CLIENTS[operation], *ALL_USERS, f"client with only {operation}")


def _cluster_requests(known: Known) -> Iterator[tuple[Api, int, Values]]:
    existing, broker = name("t", "none"), str(known.broker_id)
    rule = {
        "resource_type": ResourceType.TOPIC,
        "resource_name": "unused",
        "principal": "User:nobody",
        "host": "*",
        "operation": Operation.READ,
        "permission_type": 3,
    }
    wanted = {
        "resource_type_filter": ResourceType.TOPIC,
        "resource_name_filter": "unused",
        "pattern_type_filter": 1,
        "operation": 1,
        "permission_type": 1,
    }
    for version in (1, 3):
        yield apis.DESCRIBE_ACLS, version, wanted
        yield apis.CREATE_ACLS, version, {"creations": [rule]}
        yield apis.DELETE_ACLS, version, {"filters": [wanted]}
    yield apis.DESCRIBE_ACLS, 2, {**wanted, "principal_filter": "User:nobody"}
    yield apis.CREATE_ACLS, 2, {"creations": [{**rule, "resource_type": 4}, rule]}
    for version in (0, 1):
        yield apis.DESCRIBE_CLUSTER, version, {"include_cluster_authorized_operations": True}
    for version in (8, 10):
        yield (
            apis.METADATA,
            version,
            {"topics": [], "include_cluster_authorized_operations": True},
        )
    for version in (1, 2, 4):
        yield apis.DESCRIBE_LOG_DIRS, version, {"topics": [{"topic": existing, "partitions": [0]}]}
    yield from _about_replicas(existing)
    for resource_type in (4, 8):
        resource = {"resource_type": resource_type, "resource_name": broker}
        keys = {**resource, "configuration_keys": ["log.dirs"]}
        yield apis.DESCRIBE_CONFIGS, 4, {"resources": [keys]}
    resource = {"resource_type": 4, "resource_name": broker}
    config = {"name": "log.cleaner.threads", "value": "1"}
    yield (
        apis.ALTER_CONFIGS,
        2,
        {"resources": [{**resource, "configs": [config]}], "validate_only": True},
    )
    change = {**config, "config_operation": 0}
    yield (
        apis.INCREMENTAL_ALTER_CONFIGS,
        1,
        {"resources": [{**resource, "configs": [change]}], "validate_only": True},
    )
    missing = {"name": name("n", "none"), "num_partitions": 1, "replication_factor": 1}
    for version in (1, 7):
        yield apis.CREATE_TOPICS, version, {"topics": [missing], "validate_only": True}
    moved = {"name": existing, "partitions": [0]}
    yield apis.ALTER_REPLICA_LOG_DIRS, 2, {"dirs": [{"path": "/nowhere", "topics": [moved]}]}
    yield apis.DESCRIBE_CLIENT_QUOTAS, 1, {"components": [], "strict": False}
    yield from _broker_requests(existing)
    yield from security_requests()


def _about_replicas(existing: str) -> Iterator[tuple[Api, int, Values]]:
    partitions = [{"topic": existing, "partitions": [0]}]
    for version in (0, 2):
        yield apis.ELECT_LEADERS, version, {"topic_partitions": partitions}
    yield (
        apis.ALTER_PARTITION_REASSIGNMENTS,
        0,
        {"topics": [{"name": existing, "partitions": [{"partition_index": 0}]}]},
    )
    yield apis.LIST_PARTITION_REASSIGNMENTS, 0, {"topics": None}


def _broker_requests(existing: str) -> Iterator[tuple[Api, int, Values]]:
    """What brokers send each other: out of date, or about what is not there."""
    stale = {"controller_id": 1, "controller_epoch": 0, "broker_epoch": 0}
    yield apis.LEADER_AND_ISR, 5, {**stale, "type": 1}
    yield apis.STOP_REPLICA, 3, stale
    yield apis.UPDATE_METADATA, 7, stale
    yield apis.ALTER_PARTITION, 2, {"broker_id": 77, "broker_epoch": 1}
    yield apis.ALLOCATE_PRODUCER_IDS, 0, {"broker_id": 77, "broker_epoch": 1}
    nowhere = {
        "producer_id": 1,
        "coordinator_epoch": 0,
        "topics": [{"name": "nowhere", "partition_indexes": [0]}],
    }
    for version in (0, 1):
        yield apis.WRITE_TXN_MARKERS, version, {"markers": [nowhere]}
    verified = {
        "transactional_id": "nobody",
        "producer_id": 1,
        "verify_only": True,
        "topics": [{"name": existing, "partitions": [0]}],
    }
    yield apis.ADD_PARTITIONS_TO_TXN, 4, {"transactions": [verified]}
    partition = {"partition": 0, "leader_epoch": 0}
    for replica_id in (-1, 77):
        yield (
            apis.OFFSET_FOR_LEADER_EPOCH,
            4,
            {"replica_id": replica_id, "topics": [{"topic": existing, "partitions": [partition]}]},
        )
    wanted = {"topic": existing, "partitions": [{"partition": 0, "partition_max_bytes": 1000}]}
    yield apis.FETCH, 12, {"replica_id": 77, "topics": [wanted]}


# --- topics --------------------------------------------------------------------------------------


def _of_topics(known: Known) -> Iterator[Cell]:
    for host in (STRANGER, WILD, WILD_BUT_DESCRIBE):
        few = ("none", "not-describe") if host != STRANGER else TOPIC_SETS
        for rule_set in few:
            for kind in ("t", "n"):
                topic = name(kind, rule_set)
                for api, version, values in _topic_requests(topic, known):
                    yield Cell(host, api, version, values, f"topic {topic}")
    for rule_set in TOPIC_SETS:
        topic = name("a", rule_set)
        for host in (STRANGER, CLUSTER_CLIENTS["CREATE"]):
            yield Cell(host, apis.METADATA, 9, {"topics": [{"name": topic}]}, f"making {topic}")


def _topic_requests(topic: str, known: Known) -> Iterator[tuple[Api, int, Values]]:
    by_name = {"topics": [{"name": topic}], "allow_auto_topic_creation": False}
    yield apis.METADATA, 7, by_name
    yield apis.METADATA, 12, {**by_name, "include_topic_authorized_operations": True}
    records = {"index": 0, "records": batch(b"x")}
    for version in (7, 9):
        data = [{"name": topic, "partition_data": [records]}]
        yield apis.PRODUCE, version, {"acks": 1, "timeout_ms": 60_000, "topic_data": data}
    wanted = {"partition": 0, "partition_max_bytes": 1000}
    yield apis.FETCH, 12, {"topics": [{"topic": topic, "partitions": [wanted]}]}
    if topic in known.topic_ids:
        topic_id = known.topic_ids[topic]
        yield apis.FETCH, 15, {"topics": [{"topic_id": topic_id, "partitions": [wanted]}]}
        yield (
            apis.METADATA,
            12,
            {"topics": [{"topic_id": topic_id, "name": None}], "allow_auto_topic_creation": False},
        )
    at = {"partition_index": 0, "timestamp": -1}
    for version in (0, 7):
        yield (
            apis.LIST_OFFSETS,
            version,
            {
                "replica_id": -1,
                "topics": [{"name": topic, "partitions": [at]}],
            },
        )
    epoch = {"partition": 0, "leader_epoch": 0}
    for version in (2, 4):
        yield (
            apis.OFFSET_FOR_LEADER_EPOCH,
            version,
            {
                "replica_id": -1,
                "topics": [{"topic": topic, "partitions": [epoch]}],
            },
        )
    yield from _administration(topic)
    yield from _commits(topic)


def _administration(topic: str) -> Iterator[tuple[Api, int, Values]]:
    """Requests that change a topic, or show its configs."""
    yield (
        apis.DELETE_RECORDS,
        2,
        {
            "timeout_ms": 10_000,
            "topics": [{"name": topic, "partitions": [{"partition_index": 0}]}],
        },
    )
    yield apis.DESCRIBE_PRODUCERS, 0, {"topics": [{"name": topic, "partition_indexes": [0]}]}
    yield (
        apis.CREATE_PARTITIONS,
        3,
        {
            "topics": [{"name": topic, "count": 2}],
            "timeout_ms": 10_000,
            "validate_only": True,
        },
    )
    new = {"name": topic, "num_partitions": 1, "replication_factor": 1}
    for version in (4, 7):
        yield apis.CREATE_TOPICS, version, {"topics": [new], "validate_only": True}
    resource = {"resource_type": 2, "resource_name": topic}
    yield apis.DESCRIBE_CONFIGS, 4, {"resources": [{**resource, "configuration_keys": None}]}
    config = {"name": "retention.ms", "value": "1000000"}
    yield (
        apis.ALTER_CONFIGS,
        2,
        {
            "resources": [{**resource, "configs": [config]}],
            "validate_only": True,
        },
    )
    yield (
        apis.INCREMENTAL_ALTER_CONFIGS,
        1,
        {
            "resources": [{**resource, "configs": [{**config, "config_operation": 0}]}],
            "validate_only": True,
        },
    )


def _commits(topic: str) -> Iterator[tuple[Api, int, Values]]:
    """Requests that need the topic beside a group or a transactional id, which are allowed."""
    group, transactional_id = name("g", "all"), name("x", "all")
    yield apis.OFFSET_COMMIT, 8, _offset_commit(group, topic)
    asked = {"name": topic, "partition_indexes": [0]}
    yield apis.OFFSET_FETCH, 5, {"group_id": group, "topics": [asked]}
    yield apis.OFFSET_FETCH, 8, {"groups": [{"group_id": group, "topics": [asked]}]}
    yield (
        apis.OFFSET_DELETE,
        0,
        {
            "group_id": name("g", "everybody"),
            "topics": [{"name": topic, "partitions": [{"partition_index": 0}]}],
        },
    )
    yield apis.TXN_OFFSET_COMMIT, 3, _txn_offset_commit(transactional_id, group, topic)
    yield apis.ADD_PARTITIONS_TO_TXN, 3, _add_partitions(transactional_id, topic)


def _offset_commit(group: str, topic: str) -> Values:
    partition = {"partition_index": 0, "committed_offset": 0, "committed_metadata": ""}
    return {"group_id": group, "topics": [{"name": topic, "partitions": [partition]}]}


def _txn_offset_commit(transactional_id: str, group: str, topic: str) -> Values:
    return {
        "transactional_id": transactional_id,
        "producer_id": _NO_ONE["id"],
        "producer_epoch": _NO_ONE["epoch"],
        **_offset_commit(group, topic),
    }


def _add_partitions(transactional_id: str, topic: str) -> Values:
    return {
        "v3_and_below_transactional_id": transactional_id,
        "v3_and_below_producer_id": _NO_ONE["id"],
        "v3_and_below_topics": [{"name": topic, "partitions": [0]}],
    }


# --- groups and transactional ids ----------------------------------------------------------------


def _of_groups() -> Iterator[Cell]:
    for host in (STRANGER, WILD, WILD_BUT_DESCRIBE):
        for rule_set in GROUP_SETS if host == STRANGER else ("none", "not-describe"):
            group = name("g", rule_set)
            for api, version, values in _group_requests(group):
                yield Cell(host, api, version, values, f"group {group}")


def _group_requests(group: str) -> Iterator[tuple[Api, int, Values]]:
    for version in (1, 3):
        yield apis.FIND_COORDINATOR, version, {"key": group, "key_type": 0}
    yield apis.FIND_COORDINATOR, 4, {"coordinator_keys": [group], "key_type": 0}
    joining = {
        "group_id": group,
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 10_000,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": b""}],
    }
    yield apis.JOIN_GROUP, 5, joining
    yield apis.JOIN_GROUP, 9, joining
    member = {"group_id": group, "generation_id": 1, "member_id": "nobody"}
    yield apis.SYNC_GROUP, 3, member
    yield apis.HEARTBEAT, 4, member
    yield apis.LEAVE_GROUP, 2, {"group_id": group, "member_id": "nobody"}
    yield apis.LEAVE_GROUP, 4, {"group_id": group, "members": [{"member_id": "nobody"}]}
    for version in (2, 5):
        yield (
            apis.DESCRIBE_GROUPS,
            version,
            {
                "groups": [group],
                "include_authorized_operations": version > 2,
            },
        )
    yield apis.DELETE_GROUPS, 2, {"groups_names": [f"k{group[1:]}"]}
    for topic in (name("t", "all"), name("t", "none"), name("n", "all")):
        yield apis.OFFSET_COMMIT, 7, _offset_commit(group, topic)
        asked = {"name": topic, "partition_indexes": [0]}
        for version in (1, 7):
            yield apis.OFFSET_FETCH, version, {"group_id": group, "topics": [asked]}
        yield apis.OFFSET_FETCH, 9, {"groups": [{"group_id": group, "topics": [asked]}]}
        yield (
            apis.OFFSET_DELETE,
            0,
            {
                "group_id": group,
                "topics": [{"name": topic, "partitions": [{"partition_index": 0}]}],
            },
        )
        yield apis.TXN_OFFSET_COMMIT, 2, _txn_offset_commit(name("x", "all"), group, topic)
    for version in (2, 7):
        yield apis.OFFSET_FETCH, version, {"group_id": group, "topics": None}
    yield apis.OFFSET_FETCH, 8, {"groups": [{"group_id": group, "topics": None}]}
    yield apis.ADD_OFFSETS_TO_TXN, 3, _add_offsets(name("x", "all"), group)


def _add_offsets(transactional_id: str, group: str) -> Values:
    return {"transactional_id": transactional_id, "group_id": group, "producer_id": _NO_ONE["id"]}


def _of_ids() -> Iterator[Cell]:
    for host in (STRANGER, WILD, WILD_BUT_DESCRIBE):
        for rule_set in ID_SETS if host == STRANGER else ("none", "not-describe"):
            transactional_id = name("x", rule_set)
            for api, version, values in _id_requests(transactional_id):
                yield Cell(host, api, version, values, f"transactional id {transactional_id}")


def _id_requests(transactional_id: str) -> Iterator[tuple[Api, int, Values]]:
    yield apis.FIND_COORDINATOR, 2, {"key": transactional_id, "key_type": 1}
    yield apis.FIND_COORDINATOR, 4, {"coordinator_keys": [transactional_id], "key_type": 1}
    timeout = {"transaction_timeout_ms": 60_000}
    for version in (1, 4):
        yield apis.INIT_PRODUCER_ID, version, {"transactional_id": transactional_id, **timeout}
    end = {"transactional_id": transactional_id, "producer_id": _NO_ONE["id"]}
    yield apis.END_TXN, 3, {**end, "committed": True}
    for topic in (name("t", "all"), name("t", "none"), name("n", "all")):
        yield apis.ADD_PARTITIONS_TO_TXN, 3, _add_partitions(transactional_id, topic)
        for group in (name("g", "all"), name("g", "none"), name("g", "describe")):
            yield (
                apis.TXN_OFFSET_COMMIT,
                3,
                _txn_offset_commit(transactional_id, group, topic),
            )
    for group in (name("g", "all"), name("g", "none"), name("g", "describe")):
        yield apis.ADD_OFFSETS_TO_TXN, 3, _add_offsets(transactional_id, group)
    yield apis.DESCRIBE_TRANSACTIONS, 0, {"transactional_ids": [transactional_id]}
    records = batch(b"x", producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True)
    yield (
        apis.PRODUCE,
        9,
        {
            "transactional_id": transactional_id,
            "acks": -1,
            "timeout_ms": 60_000,
            "topic_data": [
                {"name": name("t", "none"), "partition_data": [{"index": 0, "records": records}]}
            ],
        },
    )


def _of_writers() -> Iterator[Cell]:
    for label, host in {**WRITERS, **_CLIENTS}.items():
        values: dict[str, Any]
        for version in (1, 4):
            values = {"transactional_id": None, "transaction_timeout_ms": 60_000}
            what = f"idempotent producer that is {label}"
            yield Cell(host, apis.INIT_PRODUCER_ID, version, values, what)
        records = batch(b"x", producer_id=5, producer_epoch=0, base_sequence=0)
        data = {"name": "w.one", "partition_data": [{"index": 0, "records": records}]}
        values = {"acks": 1, "timeout_ms": 60_000, "topic_data": [data]}
        yield Cell(host, apis.PRODUCE, 8, values, f"idempotent batch of one that is {label}")


# --- lists, and what is deleted last -------------------------------------------------------------


def _of_lists() -> Iterator[Cell]:
    clients = (ADMIN, STRANGER, WILD, WILD_BUT_DESCRIBE, *_CLIENTS.values())
    for host in dict.fromkeys(clients):
        for version in (1, 7, 9, 12):
            yield Cell(host, apis.METADATA, version, {"topics": None}, "all topics")
        for version in (0, 3, 5):
            yield Cell(host, apis.LIST_GROUPS, version, {}, "all groups")
        yield Cell(host, apis.LIST_TRANSACTIONS, 0, {}, "all transactions")
        groups = [{"group_id": name("g", each), "topics": None} for each in GROUP_SETS]
        yield Cell(host, apis.OFFSET_FETCH, 8, {"groups": groups}, "all offsets")
        topics = [{"topic": name("t", each), "partitions": [0]} for each in TOPIC_SETS]
        yield Cell(host, apis.DESCRIBE_LOG_DIRS, 4, {"topics": topics}, "directories")
        yield Cell(
            host,
            apis.DESCRIBE_TRANSACTIONS,
            0,
            {"transactional_ids": [OPEN_TRANSACTION]},
            "an open transaction",
        )


def _of_deletions(known: Known) -> Iterator[Cell]:
    for rule_set in TOPIC_SETS:
        yield Cell(
            STRANGER,
            apis.DELETE_TOPICS,
            5,
            {"topic_names": [name("d", rule_set)], "timeout_ms": 60_000},
            f"topic {name('d', rule_set)}",
        )
        yield Cell(
            STRANGER,
            apis.DELETE_TOPICS,
            5,
            {"topic_names": [name("n", rule_set)], "timeout_ms": 60_000},
            f"topic {name('n', rule_set)}",
        )
        yield Cell(
            STRANGER,
            apis.DELETE_TOPICS,
            6,
            {
                "topics": [{"name": None, "topic_id": known.topic_ids[name("i", rule_set)]}],
                "timeout_ms": 60_000,
            },
            f"topic {name('i', rule_set)} by its id",
        )
