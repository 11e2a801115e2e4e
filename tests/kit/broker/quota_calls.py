"""Quotas over a raw connection: set, removed, described, and what is throttled by them."""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.broker.quotas.client_quotas import ClientQuotas
from barnabas.broker.quotas.throttle_events import ThrottleEvents
from barnabas.clock import SystemClock
from barnabas.config import BrokerConfig
from barnabas.events import EventLog
from barnabas.metrics import Registry
from barnabas.protocol.api import (
    ALTER_CLIENT_QUOTAS,
    CREATE_TOPICS,
    DESCRIBE_CLIENT_QUOTAS,
    METADATA,
)
from barnabas.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlteredEntryData,
    EntityData,
    EntryData,
    OpData,
)
from barnabas.protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from barnabas.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from barnabas.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from tests.kit.raw_client import RawClient

Parts = dict[str, str | None]


def client_quotas() -> ClientQuotas:
    """The quotas of a broker without any."""
    clock, metrics = SystemClock(), Registry()
    events = EventLog(clock.wall_ms, metrics)
    return ClientQuotas(
        BrokerConfig({}), clock, lambda windows: ThrottleEvents(events, clock, windows, metrics)
    )


RAW: Parts = {"client-id": "raw"}
"""The entity of a RawClient."""


def alter_quotas(
    client: RawClient,
    entity: Parts,
    quotas: Mapping[str, float | None],
    *,
    version: int = 1,
    validate_only: bool = False,
) -> AlteredEntryData:
    """Set quotas of one entity; None removes one."""
    entry = EntryData(
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()],
        ops=[
            OpData(key=key, value=value or 0.0, remove=value is None)
            for key, value in quotas.items()
        ],
    )
    request = AlterClientQuotasRequest(entries=[entry], validate_only=validate_only)
    (answer,) = client.call(ALTER_CLIENT_QUOTAS, version, request).entries
    assert isinstance(answer, AlteredEntryData)
    return answer


def set_quotas(client: RawClient, entity: Parts, **quotas: float | None) -> None:
    answer = alter_quotas(client, entity, quotas)
    assert (answer.error_code, answer.error_message) == (0, None)


def describe_quotas(
    client: RawClient,
    *components: tuple[str, int, str | None],
    is_strict: bool = False,
    version: int = 1,
) -> DescribeClientQuotasResponse:
    """The answer for components of type, match type and name."""
    request = DescribeClientQuotasRequest(
        components=[
            ComponentData(entity_type=kind, match_type=match_type, match=name)
            for kind, match_type, name in components
        ],
        strict=is_strict,
    )
    answer = client.call(DESCRIBE_CLIENT_QUOTAS, version, request)
    assert isinstance(answer, DescribeClientQuotasResponse)
    return answer


def quotas_found(answer: DescribeClientQuotasResponse) -> dict[str, dict[str, float]]:
    """Quotas by entity, written as `user=alice,client-id=<default>`."""
    assert answer.entries is not None, answer.error_message
    return {
        ",".join(
            f"{part.entity_type}={part.entity_name or '<default>'}" for part in entry.entity
        ): {each.key: each.value for each in entry.values}
        for entry in answer.entries
    }


def mentioned(client: RawClient, *names: str) -> MetadataResponse:
    """The answer to a request for metadata that has these topics created."""
    topics = [MetadataRequestTopic(name=name) for name in names]
    answer = client.call(METADATA, 9, MetadataRequest(topics=topics))
    assert isinstance(answer, MetadataResponse)
    return answer


def created_strictly(client: RawClient, name: str) -> CreateTopicsResponse:
    """The answer of the first version that knows THROTTLING_QUOTA_EXCEEDED."""
    wanted = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    request = CreateTopicsRequest(topics=[wanted], timeout_ms=60_000)
    answer = client.call(CREATE_TOPICS, 6, request)
    assert isinstance(answer, CreateTopicsResponse)
    return answer
