"""Heartbeat (key 12): keep a member's session alive and tell it about rebalances (GC-2)."""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.broker.outcome import Outcome
from barnabas.errors import CoordinatorLoadInProgress, GroupAuthorizationFailed, KafkaError
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


def handle(context: Context, request: HeartbeatRequest) -> Outcome:
    if not context.is_allowed(request.group_id):
        return _failure(GroupAuthorizationFailed())
    return context.node.groups.ask(
        request.group_id,
        lambda machine, ticket, now: machine.heartbeat(ticket, request, now.monotonic_ms),
        _failure,
    )


def _failure(error: KafkaError) -> HeartbeatResponse:
    if isinstance(error, CoordinatorLoadInProgress):
        return HeartbeatResponse()  # sessions restart after loading, so no member is late
    return HeartbeatResponse(error_code=error.code)
