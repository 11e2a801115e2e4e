"""Heartbeat (key 12): a member lives, and hears of rebalances (GC-2)."""

from __future__ import annotations

from barnabas.broker.channel import Outcome
from barnabas.broker.context import Context
from barnabas.errors import CoordinatorLoadInProgress, GroupAuthorizationFailed, KafkaError
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


def handle(context: Context, request: HeartbeatRequest) -> Outcome:
    if not context.allowed(request.group_id):
        return _failed(GroupAuthorizationFailed())
    try:
        shard = context.node.groups.shard_of(request.group_id)
    except CoordinatorLoadInProgress:
        return HeartbeatResponse()  # sessions begin anew when it is loaded: nobody is late
    except KafkaError as error:
        return _failed(error)
    machine = shard.machine
    return shard.ask(lambda ticket, now_ms: machine.heartbeat(ticket, request, now_ms), _failed)


def _failed(error: KafkaError) -> HeartbeatResponse:
    return HeartbeatResponse(error_code=error.code)
