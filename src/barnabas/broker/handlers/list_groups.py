"""ListGroups (key 16): list the groups that this broker coordinates and the client may describe."""

from __future__ import annotations

from typing import cast

from barnabas.broker.context import Context
from barnabas.broker.coordinator.pending_reply import join_outcomes
from barnabas.broker.outcome import Outcome
from barnabas.errors import NONE, CoordinatorLoadInProgress, KafkaError
from barnabas.protocol.message import Message
from barnabas.protocol.messages.list_groups import (
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)
from barnabas.security.acl import CLUSTER_NAME, Operation, ResourceType


def handle(context: Context, request: ListGroupsRequest) -> Outcome:
    groups = context.node.groups
    # As in Kafka, list the groups that have been loaded.
    code = CoordinatorLoadInProgress.code if groups.is_loading else NONE

    def combine(answers: list[Message]) -> ListGroupsResponse:
        parts = cast(list[ListGroupsResponse], answers)
        found = [group for part in parts for group in part.groups]
        errors = [part.error_code for part in parts if part.error_code]
        return ListGroupsResponse(
            # List the groups of the other shards along with the error, because clients display what
            # they receive.
            error_code=code or (errors[0] if errors else NONE),
            groups=_visible(context, found),
        )

    outcomes = [
        shard.ask(lambda machine, ticket, _: machine.list_groups(ticket, request), _failure)
        for shard in groups.ready
    ]
    return join_outcomes(outcomes, combine)


def _failure(error: KafkaError) -> ListGroupsResponse:
    return ListGroupsResponse(error_code=error.code)


def _visible(context: Context, groups: list[ListedGroup]) -> list[ListedGroup]:
    """Return the groups that the client may describe.

    If it may DESCRIBE the cluster, these are all groups.
    """
    if context.may(Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME):
        return groups
    return [
        group
        for group in groups
        if context.may(Operation.DESCRIBE, ResourceType.GROUP, group.group_id)
    ]
