"""Configs of topics and brokers, described over a raw connection."""

from __future__ import annotations

from barnabas.protocol.api import (
    DESCRIBE_CONFIGS,
)
from barnabas.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResult,
)
from tests.kit.raw_client import RawClient


def describe(
    client: RawClient,
    kind: int,
    name: str,
    keys: list[str] | None = None,
    version: int = DESCRIBE_CONFIGS.max_version,
) -> DescribeConfigsResult:
    resource = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=keys
    )
    request = DescribeConfigsRequest(resources=[resource])
    if version >= 3:
        request.include_documentation = True
    result: DescribeConfigsResult = client.call(DESCRIBE_CONFIGS, version, request).results[0]
    return result


TOPIC, BROKER = 2, 4


def value_of(client: RawClient, kind: int, name: str, config: str) -> tuple[str | None, int]:
    (entry,) = describe(client, kind, name, [config]).configs
    return entry.value, entry.config_source
