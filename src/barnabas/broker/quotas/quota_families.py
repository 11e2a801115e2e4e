"""Yields metrics for clients and addresses that have a quota, with the same names as in Kafka
(SE-5).

    kafka.server:type=Produce,user=alice,client-id=web  byte-rate
        kafka_server_quota_byte_rate{resource="Produce",user="alice",clientId="web"}
    kafka.server:type=socket-server-metrics,ip=10.0.0.1  connection-accept-rate
        kafka_server_socket_server_metrics_connection_accept_rate{ip="10.0.0.1"}

A broker without quotas exports none of these metrics. Clients can make up client ids, and each id
would leave a series in the system that collects the metrics. For this reason, only the most
recently used ids and the addresses with the highest connection rates are shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import nlargest
from typing import TYPE_CHECKING

from barnabas.broker.quotas.client_quotas import FETCH, MUTATION, PRODUCE, REQUEST, MutationMeter
from barnabas.broker.quotas.entity import decode_name
from barnabas.metrics import Family, Sample

if TYPE_CHECKING:
    from barnabas.broker.quotas.client_quotas import ClientQuotas, RateMeter
    from barnabas.broker.quotas.entity import Entity
    from barnabas.broker.quotas.ip_quotas import IpQuotas

MOST_SHOWN = 1_000
"""The largest number of client limits (a client has up to four) and of addresses that are shown."""

_RESOURCES = {
    PRODUCE: "Produce",
    FETCH: "Fetch",
    REQUEST: "Request",
    MUTATION: "ControllerMutation",
}
_RATES = {
    PRODUCE: "byte_rate",
    FETCH: "byte_rate",
    REQUEST: "request_time",
    MUTATION: "mutation_rate",
}
_HELP = {
    "byte_rate": "Bytes per second of the clients that share a quota (byte-rate)",
    "request_time": "Percentage of one core that their requests use (request-time)",
    "mutation_rate": "Partitions created and deleted per second (mutation-rate)",
    "tokens": "Partitions that may be created or deleted at once (tokens)",
    "throttle_time": "Average of the non-zero throttle times, in ms (throttle-time)",
}

_Meter = tuple[str, "Entity", "RateMeter | MutationMeter"]


def quota_families(quotas: ClientQuotas, ip_quotas: IpQuotas, now_ms: int) -> Iterator[Family]:
    """Yield the families for clients and addresses that have a quota, or nothing if no quota is
    set.
    """
    if quotas.is_active:
        meters = nlargest(MOST_SHOWN, quotas.meters(), key=lambda each: each[2].last_used_ms)
        yield from _of_clients(meters, now_ms)
    if ip_quotas.is_active:
        found = nlargest(MOST_SHOWN, ip_quotas.rates(now_ms), key=lambda each: each[1])
        yield Family(
            "kafka_server_socket_server_metrics_connection_accept_rate",
            "gauge",
            "Connections per second from an address with a quota (connection-accept-rate)",
            [Sample(rate, (("ip", address),)) for address, rate in found],
        )


def _of_clients(meters: list[_Meter], now_ms: int) -> Iterator[Family]:
    samples: dict[str, list[Sample]] = {name: [] for name in _HELP}
    for kind, sharing, meter in meters:
        labels = _labels(kind, sharing)
        samples[_RATES[kind]].append(Sample(meter.per_second(now_ms), labels))
        samples["throttle_time"].append(Sample(meter.throttle_times.value(now_ms), labels))
        if isinstance(meter, MutationMeter):
            samples["tokens"].append(Sample(meter.tokens(now_ms), labels))
    for name, sentence in _HELP.items():
        if samples[name]:
            yield Family(f"kafka_server_quota_{name}", "gauge", sentence, samples[name])


def _labels(kind: str, sharing: Entity) -> tuple[tuple[str, str], ...]:
    """Return the labels, leaving out the parts that the quota does not use."""
    found = [("resource", _RESOURCES[kind])]
    if sharing.user:
        found.append(("user", decode_name(sharing.user) or ""))
    if sharing.client_id:
        found.append(("clientId", decode_name(sharing.client_id) or ""))
    return tuple(found)
