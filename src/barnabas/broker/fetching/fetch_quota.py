"""The quota of a consumer's fetches: how much one answer may hold, and whether it may leave.

As Kafka does it: an answer that would exceed the quota is not sent, and not counted. The client
gets an empty one with the time after which the same bytes would be within the quota, and asks
again. An answer is limited to what an idle client may have, or none would ever leave; only a single
batch may be larger (KIP-74).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.broker.context import Context
    from barnabas.broker.fetching.row import Row

_ANSWER_BYTES, _TOPIC_BYTES, _PARTITION_BYTES = 16, 18, 40  # besides the records


def most_bytes(context: Context, max_bytes: int) -> int:
    """How many bytes an answer may hold of those that are asked for."""
    limits = context.node.quotas.of(context.client.principal.name, context.client_id)
    if limits is None or limits.fetch is None:
        return max_bytes
    return min(max_bytes, limits.fetch.most_at_once)


def throttle_ms(context: Context, rows: list[Row]) -> int:
    """Count an answer of these rows. If it may not leave now, it was not counted, and this is how
    long the client has to wait; else 0."""
    limits = context.node.quotas.of(context.client.principal.name, context.client_id)
    if limits is None:
        return 0
    now_ms = context.node.clock.monotonic_ms()
    wait_ms = 0 if limits.request is None else limits.request.throttle_ms(now_ms)
    if limits.fetch is not None:
        size_bytes = _size_bytes(rows)
        wait_ms = max(wait_ms, limits.fetch.record(size_bytes, now_ms))
        if wait_ms:
            limits.fetch.count(-size_bytes, now_ms)
    return wait_ms


def _size_bytes(rows: list[Row]) -> int:
    topics = len({row.topic_id or row.topic for row in rows})
    records = sum([row.size_bytes for row in rows])
    return _ANSWER_BYTES + topics * _TOPIC_BYTES + len(rows) * _PARTITION_BYTES + records
