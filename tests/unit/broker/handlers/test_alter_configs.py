"""AlterConfigs: all settings of a resource are replaced."""

from __future__ import annotations

import pytest

from barnabas.errors import InvalidConfig, InvalidRequest, UnknownTopicOrPartition
from barnabas.protocol.api import ALTER_CONFIGS
from barnabas.protocol.messages.alter_configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
)
from tests.kit.broker.configs import BROKER, TOPIC, value_of
from tests.kit.raw_client import RawClient


def alter(
    client: RawClient,
    kind: int,
    name: str,
    *settings: tuple[str, str | None],
    version: int = 2,
    validate_only: bool = False,
) -> AlterConfigsResourceResponse:
    resource = AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[AlterableConfig(name=config, value=value) for config, value in settings],
    )
    request = AlterConfigsRequest(resources=[resource], validate_only=validate_only)
    (answer,) = client.call(ALTER_CONFIGS, version, request).responses
    assert (answer.resource_type, answer.resource_name) == (kind, name)
    return answer


@pytest.mark.parametrize("version", [0, 1, 2])
def test_what_is_not_named_falls_back(client: RawClient, topic: str, version: int) -> None:
    """TP-4"""
    settings = [("retention.ms", "5000"), ("segment.bytes", "2000000")]
    answer = alter(client, TOPIC, topic, *settings, version=version)
    assert (answer.error_code, answer.error_message) == (0, None)
    assert value_of(client, TOPIC, topic, "segment.bytes") == ("2000000", 1)
    assert alter(client, TOPIC, topic, ("retention.ms", "6000")).error_code == 0
    assert value_of(client, TOPIC, topic, "retention.ms") == ("6000", 1)
    assert value_of(client, TOPIC, topic, "segment.bytes") == ("1073741824", 5)
    assert alter(client, TOPIC, topic, validate_only=True).error_code == 0
    assert value_of(client, TOPIC, topic, "retention.ms") == ("6000", 1)
    assert alter(client, TOPIC, topic).error_code == 0
    assert value_of(client, TOPIC, topic, "retention.ms") == ("604800000", 5)


def test_of_one_broker_and_of_all(client: RawClient) -> None:
    assert alter(client, BROKER, "", ("log.roll.ms", "70000")).error_code == 0
    assert alter(client, BROKER, "0", ("log.flush.interval.ms", "900")).error_code == 0
    assert value_of(client, BROKER, "0", "log.roll.ms") == ("70000", 3)
    assert value_of(client, BROKER, "0", "log.flush.interval.ms") == ("900", 2)
    for name in ("", "0"):
        assert alter(client, BROKER, name).error_code == 0
    assert value_of(client, BROKER, "0", "log.roll.ms") == (None, 5)


def test_what_is_refused(client: RawClient, topic: str) -> None:
    """UX-4"""
    for kind, name, settings, error in [
        (TOPIC, "none", [("flush.ms", "1")], UnknownTopicOrPartition),
        (TOPIC, topic, [("flush.mss", "1")], InvalidConfig),
        (TOPIC, topic, [("flush.ms", "x")], InvalidConfig),
        (TOPIC, topic, [("flush.ms", None)], InvalidRequest),
        (TOPIC, topic, [("flush.ms", "1"), ("flush.ms", "1")], InvalidRequest),
        (BROKER, "7", [("log.roll.ms", "1")], InvalidRequest),
        (BROKER, "0", [("num.partitions", "1")], InvalidRequest),
        (3, "x", [], InvalidRequest),
        (8, "0", [("barnabas", "INFO")], InvalidRequest),
    ]:
        answer = alter(client, kind, name, *settings)
        assert answer.error_code == error.code, (name, settings, answer)
        assert answer.error_message
