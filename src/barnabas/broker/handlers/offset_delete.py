"""OffsetDelete (key 47): delete a group's offsets for some partitions (KIP-496)."""

from __future__ import annotations

from typing import cast

from barnabas.broker.context import Context
from barnabas.broker.coordinator.offset_topics import Refused, add_refused, screen
from barnabas.broker.coordinator.pending_reply import join_outcomes
from barnabas.broker.outcome import Outcome
from barnabas.broker.pieces import Lists, in_pieces
from barnabas.errors import NONE, GroupAuthorizationFailed, InvalidGroupId, KafkaError
from barnabas.protocol.message import Message
from barnabas.protocol.messages.offset_delete import (
    OffsetDeletePartitionResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteTopicResponse,
)

_LISTS = Lists(("topics", "partitions"), ("topics", "partitions"))


def handle(context: Context, request: OffsetDeleteRequest) -> Outcome:
    return in_pieces(context, request, _LISTS, _handle)


def _handle(context: Context, request: OffsetDeleteRequest) -> Outcome:
    if not context.is_allowed(request.group_id):
        return _failure(GroupAuthorizationFailed())
    if not request.group_id:
        return _failure(InvalidGroupId())
    request.topics, refused = screen(context, request.topics)
    # Ask the coordinator even if no partition is left, because the group itself may be invalid.
    outcome = context.node.groups.ask(
        request.group_id,
        lambda machine, ticket, now: machine.delete_offsets(ticket, request, now.monotonic_ms),
        _failure,
    )
    return (
        join_outcomes([outcome], lambda answers: _complete(answers, refused))
        if refused
        else outcome
    )


def _failure(error: KafkaError) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(error_code=error.code)


def _complete(answers: list[Message], refused: Refused) -> OffsetDeleteResponse:
    answer = cast(OffsetDeleteResponse, answers[0])
    if answer.error_code == NONE:
        add_refused(
            answer.topics, refused, OffsetDeleteTopicResponse, OffsetDeletePartitionResponse
        )
    return answer
