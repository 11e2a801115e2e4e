"""DescribeClientQuotas: which entities match, and what is refused with Kafka's reasons."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from barnabas import Broker
from barnabas.broker.quotas.quota_filter import ANY, DEFAULT, EXACT
from barnabas.errors import ClusterAuthorizationFailed, InvalidRequest, UnsupportedVersion
from tests.kit.broker.quota_calls import Parts, describe_quotas, quotas_found, set_quotas
from tests.kit.raw_client import RawClient

ENTITIES: list[Parts] = [
    {"user": "alice"},
    {"user": None},
    {"user": "alice", "client-id": "c"},
    {"user": "alice", "client-id": None},
    {"client-id": "c"},
]


@pytest.fixture(scope="module", autouse=True)
def _quotas(node: Broker) -> Iterator[None]:
    with RawClient(node.bootstrap_servers) as client:
        for entity in ENTITIES:
            set_quotas(client, entity, request_percentage=5_000.0)
        set_quotas(client, {"ip": "10.0.0.1"}, connection_creation_rate=7.0)
        yield


@pytest.mark.parametrize(
    ("components", "is_strict", "found"),
    [
        ([("user", EXACT, "alice")], True, ["user=alice"]),
        (
            [("user", EXACT, "alice")],
            False,
            ["user=alice", "user=alice,client-id=c", "user=alice,client-id=<default>"],
        ),
        ([("user", DEFAULT, None)], False, ["user=<default>"]),
        ([("user", ANY, None)], True, ["user=alice", "user=<default>"]),
        ([("client-id", ANY, None)], True, ["client-id=c"]),
        (
            [("user", ANY, None), ("client-id", DEFAULT, None)],
            True,
            ["user=alice,client-id=<default>"],
        ),
        ([("ip", ANY, None)], False, ["ip=10.0.0.1"]),
        ([("user", EXACT, "nobody")], False, []),
    ],
)
@pytest.mark.parametrize("version", [0, 1])
def test_se_5_entities_match_as_the_filter_says(
    client: RawClient,
    components: list[tuple[str, int, str | None]],
    is_strict: bool,
    found: list[str],
    version: int,
) -> None:
    answer = describe_quotas(client, *components, is_strict=is_strict, version=version)
    assert sorted(quotas_found(answer)) == sorted(found)


def test_se_5_without_a_filter_all_quotas_are_described(client: RawClient) -> None:
    found = quotas_found(describe_quotas(client))
    assert len(found) == len(ENTITIES) + 1
    assert found["ip=10.0.0.1"] == {"connection_creation_rate": 7.0}
    assert found["user=alice"] == {"request_percentage": 5_000.0}


@pytest.mark.parametrize(
    ("components", "error", "reason"),
    [
        ([("user", ANY, None)] * 2, InvalidRequest, "Duplicate user filter component entity type"),
        ([("", ANY, None)], InvalidRequest, "Unexpected empty filter component entity type"),
        ([("shoe", ANY, None)], UnsupportedVersion, "Custom entity type 'shoe' not supported"),
        (
            [("user", ANY, None), ("ip", ANY, None)],
            InvalidRequest,
            "Invalid entity filter component combination",
        ),
        ([("user", 9, None)], InvalidRequest, "Unexpected match type: 9"),
        ([("user", EXACT, None)], InvalidRequest, "Request specifies MATCH_TYPE_EXACT"),
    ],
)
def test_se_5_a_filter_that_makes_no_sense_is_refused(
    client: RawClient,
    components: list[tuple[str, int, str | None]],
    error: type[InvalidRequest | UnsupportedVersion],
    reason: str,
) -> None:
    answer = describe_quotas(client, *components)
    assert answer.error_code == error.code
    assert (answer.error_message or "").startswith(reason)
    assert answer.entries is None


def test_se_5_only_who_may_see_the_clusters_configs_sees_quotas(
    client: RawClient, deny: Any
) -> None:
    deny("kafka-cluster")
    assert describe_quotas(client).error_code == ClusterAuthorizationFailed.code
