"""OffsetCommit (key 8): commit a group's offsets to `__consumer_offsets` (GC-3).

The coordinator's machine decides which offsets a member may commit. This handler checks what the
machine cannot know, namely whether the topics exist and whether the client is authorized. Version 0
is not supported, because it stored offsets in ZooKeeper.
"""

from __future__ import annotations

from typing import cast

from barnabas.broker.context import Context
from barnabas.broker.coordinator.offset_topics import Refused, add_refused, screen
from barnabas.broker.coordinator.pending_reply import ShardOutcome, join_outcomes
from barnabas.broker.outcome import Outcome
from barnabas.broker.pieces import Lists, in_pieces
from barnabas.coordinator.offset_answers import commit_answer
from barnabas.errors import GroupAuthorizationFailed, KafkaError, UnsupportedVersion
from barnabas.protocol.message import Message
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitPartitionResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitTopicResponse,
)

_IN_ZOOKEEPER = 0


_LISTS = Lists(("topics", "partitions"), ("topics", "partitions"))


def handle(context: Context, request: OffsetCommitRequest) -> Outcome:
    return in_pieces(context, request, _LISTS, _handle)


def _handle(context: Context, request: OffsetCommitRequest) -> Outcome:
    if context.version == _IN_ZOOKEEPER:
        return commit_answer(request, UnsupportedVersion)
    if not context.is_allowed(request.group_id):
        return commit_answer(request, GroupAuthorizationFailed)
    request.topics, refused = screen(context, request.topics)
    if not refused:
        return _commit(context, request)
    # As in Kafka, the coordinator is not asked if no partition is left, so an unknown member gets
    # no error.
    outcome = _commit(context, request) if request.topics else OffsetCommitResponse()
    return join_outcomes([outcome], lambda answers: _complete(answers, refused))


def _commit(context: Context, request: OffsetCommitRequest) -> ShardOutcome:
    def failure(error: KafkaError) -> OffsetCommitResponse:
        return commit_answer(request, error)

    return context.node.groups.ask(
        request.group_id,
        lambda machine, ticket, now: machine.commit(ticket, request, now),
        failure,
    )


def _complete(answers: list[Message], refused: Refused) -> OffsetCommitResponse:
    answer = cast(OffsetCommitResponse, answers[0])
    add_refused(answer.topics, refused, OffsetCommitTopicResponse, OffsetCommitPartitionResponse)
    return answer
