"""AlterClientQuotas: where quotas are kept, and what is refused with Kafka's reasons."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from barnabas import Broker
from barnabas.cluster.config_changes import config_path
from barnabas.errors import ClusterAuthorizationFailed, InvalidRequest
from tests.kit.broker.quota_calls import Parts, alter_quotas, set_quotas
from tests.kit.raw_client import RawClient


def stored(node: Broker, path: str) -> bytes | str | None:
    """The data of a node below `/config`; "gone" without a node."""
    server: Any = node.server
    found = asyncio.run(server.node.store.read(config_path(path)))
    return "gone" if found is None else found.data


@pytest.mark.parametrize("version", [0, 1])
def test_se_5_quotas_are_kept_as_kafka_keeps_them(
    node: Broker, client: RawClient, version: int
) -> None:
    alice: Parts = {"user": "alice smith", "client-id": None}
    answer = alter_quotas(
        client,
        alice,
        {"producer_byte_rate": 1024.0, "request_percentage": 50.0},
        version=version,
    )
    assert (answer.error_code, answer.error_message) == (0, None)
    assert stored(node, "users/alice%20smith/clients/<default>") == (
        b'{"version":1,"config":{"producer_byte_rate":"1024","request_percentage":"50.0"}}'
    )
    assert stored(node, "users/alice%20smith") is None
    set_quotas(client, alice, producer_byte_rate=None, request_percentage=None)
    assert stored(node, "users/alice%20smith") == "gone"


def test_se_5_an_emptied_node_is_removed_and_its_neighbours_stay(
    node: Broker, client: RawClient
) -> None:
    set_quotas(client, {"user": "bob"}, consumer_byte_rate=5.0)
    set_quotas(client, {"user": "bob", "client-id": "c"}, consumer_byte_rate=6.0)
    set_quotas(client, {"user": "bob", "client-id": "c"}, consumer_byte_rate=None)
    assert stored(node, "users/bob/clients") == "gone"
    assert stored(node, "users/bob") == b'{"version":1,"config":{"consumer_byte_rate":"5"}}'
    set_quotas(client, {"user": "bob"}, consumer_byte_rate=None)
    assert stored(node, "users/bob") == "gone"
    assert stored(node, "users") is None


def test_se_5_what_is_only_validated_is_not_kept(node: Broker, client: RawClient) -> None:
    answer = alter_quotas(
        client, {"client-id": "v"}, {"producer_byte_rate": 1.0}, validate_only=True
    )
    assert answer.error_code == 0
    assert stored(node, "clients/v") == "gone"


@pytest.mark.parametrize(
    ("entity", "quotas", "reason"),
    [
        ({}, {}, "Invalid empty client quota entity"),
        ({"shoe": "x"}, {}, "Unhandled client quota entity type: shoe"),
        ({"user": ""}, {}, "Empty user not supported"),
        ({"user": "u"}, {"colour": 1.0}, "Invalid configuration key colour"),
        (
            {"client-id": "c"},
            {"producer_byte_rate": 1.5},
            "Configuration producer_byte_rate must be a LONG value",
        ),
        ({"ip": "1.2.3.4"}, {"producer_byte_rate": 1.0}, "Invalid configuration key producer_byte"),
        ({"ip": "no such host"}, {}, "no%20such%20host is not a valid IP or resolvable host."),
        ({"ip": "1.2.3.4", "user": "u"}, {}, "Invalid quota entity combination"),
    ],
)
def test_se_5_what_makes_no_sense_is_refused(
    client: RawClient, entity: Parts, quotas: dict[str, float | None], reason: str
) -> None:
    answer = alter_quotas(client, entity, quotas)
    assert answer.error_code == InvalidRequest.code
    assert (answer.error_message or "").startswith(reason)


def test_se_5_only_who_may_alter_the_cluster_sets_quotas(client: RawClient, deny: Any) -> None:
    deny("kafka-cluster")
    answer = alter_quotas(client, {"user": "u"}, {"producer_byte_rate": 1.0})
    assert answer.error_code == ClusterAuthorizationFailed.code
