"""Metrics of clients that have a quota, as the JMX exporter's example for Kafka names them (SE-5).

    kafka.server:type=Produce,user=...,client-id=... attribute byte-rate
        kafka_server_quota_byte_rate{resource="Produce",user="...",clientId="..."}

A label is empty where a quota does not tell clients apart by it. As long as no client has used a
quota there is none of them.
"""

from __future__ import annotations

from heapq import nlargest
from typing import TYPE_CHECKING, Final

from barnabas.broker.quotas.client_quotas import (
    FETCH,
    MUTATION,
    PRODUCE,
    REQUEST,
    MutationMeter,
    RateMeter,
)
from barnabas.broker.quotas.entity import Entity, decoded
from barnabas.metrics import Family, Sample

if TYPE_CHECKING:
    from collections.abc import Iterator

    from barnabas.broker.quotas.client_quotas import ClientQuotas

_RESOURCES: Final = {
    PRODUCE: "Produce",
    FETCH: "Fetch",
    REQUEST: "Request",
    MUTATION: "ControllerMutation",
}
_MOST_CLIENTS: Final = 1_000
"""On one page: client ids are the clients' own, and each is a series in Prometheus."""

_RATES: Final = {
    "byte_rate": "Bytes per second of a client with a quota (Produce, Fetch: byte-rate)",
    "request_time": "Percent of a core that a client with a quota takes (Request: request-time)",
    "tokens": "Partitions that a client may create or delete now (ControllerMutation: tokens)",
    "throttle_time": "Milliseconds for which a client above its quota is throttled (throttle-time)",
}


def quota_families(quotas: ClientQuotas, now_ms: int) -> Iterator[Family]:
    """Those of the clients that were counted last."""
    samples: dict[str, list[Sample]] = {name: [] for name in _RATES}
    latest = nlargest(_MOST_CLIENTS, quotas.meters(), key=lambda each: each[2].last_used_ms)
    for kind, entity, meter in sorted(latest, key=lambda each: each[:2]):
        name, value = _measured(kind, meter, now_ms)
        labels = _labels(_RESOURCES[kind], entity)
        samples[name].append(Sample(value, labels))
        samples["throttle_time"].append(Sample(meter.throttle_ms(now_ms), labels))
    for name, sentence in _RATES.items():
        if samples[name]:
            yield Family(f"kafka_server_quota_{name}", "gauge", sentence, samples[name])


def _measured(kind: str, meter: RateMeter | MutationMeter, now_ms: int) -> tuple[str, float]:
    if isinstance(meter, MutationMeter):
        return "tokens", meter.tokens(now_ms)
    return "request_time" if kind == REQUEST else "byte_rate", meter.per_second(now_ms)


def _labels(resource: str, entity: Entity) -> tuple[tuple[str, str], ...]:
    user, client_id = (decoded(name) or "" for name in entity)
    return ("resource", resource), ("user", user), ("clientId", client_id)
