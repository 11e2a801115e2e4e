"""JoinGroup (key 11): join a group. The response is sent once all members have joined (GC-2)."""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.broker.outcome import Outcome
from barnabas.coordinator.joining import Caller
from barnabas.coordinator.rebalance import refused_join
from barnabas.errors import GroupAuthorizationFailed, KafkaError
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse


def handle(context: Context, request: JoinGroupRequest) -> Outcome:
    version = context.version

    def failure(error: KafkaError) -> JoinGroupResponse:
        return refused_join(error, request.member_id, version)

    if not context.is_allowed(request.group_id):
        return failure(GroupAuthorizationFailed())
    return context.node.groups.ask(
        request.group_id,
        lambda machine, ticket, now: machine.join(ticket, request, _caller(context), now),
        failure,
    )


def _caller(context: Context) -> Caller:
    # The random part of a new member's id, formatted like a Java UUID.
    digits = context.node.random.uuid().hex()
    parts = (digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])
    return Caller(
        client_id=context.client_id or "",
        # Java prints addresses with a leading slash, and tools display them that way.
        host=f"/{context.client.address}",
        new_id="-".join(parts),
        version=context.version,
    )
