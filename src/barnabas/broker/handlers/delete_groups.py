"""DeleteGroups (key 42): delete groups that have no members, together with their
offsets (KIP-229).
"""

from __future__ import annotations

from typing import cast

from barnabas.broker.context import Context
from barnabas.broker.coordinator.pending_reply import Fail, ShardOutcome, join_outcomes
from barnabas.broker.coordinator.shard import Shard
from barnabas.broker.outcome import Outcome
from barnabas.broker.pieces import Lists, in_pieces
from barnabas.coordinator.groups import Groups
from barnabas.errors import GroupAuthorizationFailed, KafkaError
from barnabas.protocol.message import Message
from barnabas.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)

_LISTS = Lists(("groups_names",), ("results",))


def handle(context: Context, request: DeleteGroupsRequest) -> Outcome:
    return in_pieces(context, request, _LISTS, _handle)


def _handle(context: Context, request: DeleteGroupsRequest) -> Outcome:
    """Delete the groups shard by shard. Each shard needs only one append."""
    refused = []
    by_shard: dict[int, tuple[Shard[Groups], list[str]]] = {}
    # As in Kafka, return one result for a group listed twice.
    for group_id in dict.fromkeys(request.groups_names):
        try:
            if not context.is_allowed(group_id):
                raise GroupAuthorizationFailed(f"not allowed to delete {group_id}")
            shard = context.node.groups.shard_of(group_id)
        except KafkaError as error:
            refused.append(DeletableGroupResult(group_id=group_id, error_code=error.code))
        else:
            # The tombstones of all groups in a shard are written to one partition of
            # `__consumer_offsets`.
            by_shard.setdefault(shard.partition, (shard, []))[1].append(group_id)

    def combine(answers: list[Message]) -> DeleteGroupsResponse:
        parts = cast(list[DeleteGroupsResponse], answers)
        results = [result for part in parts for result in part.results]
        return DeleteGroupsResponse(results=refused + results)

    return join_outcomes([_delete(*each) for each in by_shard.values()], combine)


def _delete(shard: Shard[Groups], group_ids: list[str]) -> ShardOutcome:
    return shard.ask(
        lambda machine, ticket, now: machine.delete(ticket, group_ids, now),
        _all_failed(group_ids),
    )


def _all_failed(group_ids: list[str]) -> Fail:
    def failure(error: KafkaError) -> DeleteGroupsResponse:
        results = [DeletableGroupResult(group_id=one, error_code=error.code) for one in group_ids]
        return DeleteGroupsResponse(results=results)

    return failure
