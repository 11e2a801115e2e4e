"""LeaveGroup (key 13): members go, without waiting for their sessions to time out (GC-2)."""

from __future__ import annotations

from barnabas.broker.channel import Outcome
from barnabas.broker.context import Context
from barnabas.errors import GroupAuthorizationFailed, KafkaError
from barnabas.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse


def handle(context: Context, request: LeaveGroupRequest) -> Outcome:
    if not context.allowed(request.group_id):
        return _failed(GroupAuthorizationFailed())
    try:
        shard = context.node.groups.shard_of(request.group_id)
    except KafkaError as error:
        return _failed(error)
    machine, version = shard.machine, context.version
    return shard.ask(
        lambda ticket, now_ms: machine.leave(ticket, request, version, now_ms), _failed
    )


def _failed(error: KafkaError) -> LeaveGroupResponse:
    return LeaveGroupResponse(error_code=error.code)
