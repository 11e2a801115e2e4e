"""DescribeGroups (key 15): describe groups, their members and, if requested, their
last rebalances.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from barnabas.broker.context import Context
from barnabas.broker.coordinator.pending_reply import ShardOutcome, join_outcomes
from barnabas.broker.outcome import Outcome
from barnabas.broker.runtime.slices import Pace, Slices, run_slices
from barnabas.broker.security.authorized_operations import authorized_operations
from barnabas.errors import NONE, GroupAuthorizationFailed, KafkaError
from barnabas.protocol.message import Message
from barnabas.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from barnabas.security.acl import ResourceType


def handle(context: Context, request: DescribeGroupsRequest) -> Outcome:
    def combine(answers: list[Message]) -> DescribeGroupsResponse:
        groups = cast(list[DescribedGroup], answers)
        if request.include_authorized_operations:
            for group in groups:
                if group.error_code == NONE:
                    group.authorized_operations = authorized_operations(
                        context, ResourceType.GROUP, group.group_id
                    )
        return DescribeGroupsResponse(groups=groups)

    return run_slices(_describe_all(context, request, combine))


def _describe_all(
    context: Context, request: DescribeGroupsRequest, combine: Callable[[list[Message]], Message]
) -> Slices[Outcome]:
    pace = Pace()
    outcomes: dict[str, ShardOutcome] = {}  # one result per group, even if it is listed twice
    for group_id in request.groups:
        if group_id not in outcomes:
            outcomes[group_id] = _describe(context, group_id, request.include_events)
        if pace.is_over():
            yield
    return join_outcomes(list(outcomes.values()), combine)


def _describe(context: Context, group_id: str, with_events: bool) -> ShardOutcome:
    def failure(error: KafkaError) -> DescribedGroup:
        return DescribedGroup(group_id=group_id, error_code=error.code)

    if not context.is_allowed(group_id):
        return failure(GroupAuthorizationFailed())
    return context.node.groups.ask(
        group_id,
        lambda machine, ticket, _: machine.describe(ticket, group_id, with_events=with_events),
        failure,
    )
