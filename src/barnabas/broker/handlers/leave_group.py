"""LeaveGroup (key 13): remove members from a group before their sessions time out (GC-2)."""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.broker.outcome import Outcome
from barnabas.broker.pieces import Lists, in_pieces
from barnabas.errors import GroupAuthorizationFailed, KafkaError
from barnabas.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse

_LISTS = Lists(("members",), ("members",))


def handle(context: Context, request: LeaveGroupRequest) -> Outcome:
    return in_pieces(context, request, _LISTS, _handle)


def _handle(context: Context, request: LeaveGroupRequest) -> Outcome:
    if not context.is_allowed(request.group_id):
        return _failure(GroupAuthorizationFailed())
    return context.node.groups.ask(
        request.group_id,
        lambda machine, ticket, now: machine.leave(ticket, request, context.version, now),
        _failure,
    )


def _failure(error: KafkaError) -> LeaveGroupResponse:
    return LeaveGroupResponse(error_code=error.code)
