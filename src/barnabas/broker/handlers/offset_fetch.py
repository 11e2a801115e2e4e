"""OffsetFetch (key 9): return the offsets that groups have committed.

    version 1       one group; errors are per partition
    2 to 7          one group, optionally with all of its offsets; one error for the group
    from 8          several groups, each with its own error (KIP-709)

If a request lists a topic that the client may not describe, the response contains an error for that
topic. If the request asks for all offsets, such a topic is omitted. Version 0 is not supported,
because it read offsets from ZooKeeper.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, cast

from barnabas.broker.context import Context
from barnabas.broker.coordinator.pending_reply import ShardOutcome, join_outcomes
from barnabas.broker.outcome import Hold, Later, Outcome, Staged
from barnabas.broker.pieces import Lists, in_pieces
from barnabas.broker.runtime.slices import Pace, Slices, run_slices
from barnabas.coordinator.offset_answers import Error, fetch_answer, no_offset
from barnabas.errors import (
    GroupAuthorizationFailed,
    KafkaError,
    TopicAuthorizationFailed,
    UnsupportedVersion,
)
from barnabas.protocol.message import Message
from barnabas.protocol.messages.offset_fetch import (
    OffsetFetchGroup,
    OffsetFetchGroupResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchTopic,
    OffsetFetchTopicResponse,
)
from barnabas.security.acl import Operation, ResourceType

_IN_ZOOKEEPER = 0
_ERROR_OF_GROUP = 2
_BATCHED = 8


_LISTS_OF_GROUP = Lists(("topics", "partition_indexes"), ("topics", "partitions"))
_LISTS = Lists(("groups", "topics", "partition_indexes"), ("groups", "topics", "partitions"))


def handle(context: Context, request: OffsetFetchRequest) -> Outcome:
    naming = run_slices(_name_once(request))
    if naming is None:
        return _handle_named(context, request)
    return Hold(_handle_long(context, request, naming))


async def _handle_long(
    context: Context, request: OffsetFetchRequest, naming: Coroutine[Any, Any, None]
) -> Message | Staged | Later | None:
    await naming
    outcome = _handle_named(context, request)
    return await outcome.until if isinstance(outcome, Hold) else outcome


def _handle_named(context: Context, request: OffsetFetchRequest) -> Outcome:
    lists = _LISTS if context.version >= _BATCHED else _LISTS_OF_GROUP
    return in_pieces(context, request, lists, _handle)


def _handle(context: Context, request: OffsetFetchRequest) -> Outcome:
    if context.version >= _BATCHED:
        outcomes = [_fetch(context, group, request.require_stable) for group in request.groups]
        return join_outcomes(
            outcomes,
            lambda answers: OffsetFetchResponse(
                groups=cast(list[OffsetFetchGroupResponse], answers)
            ),
        )
    group = OffsetFetchGroup(group_id=request.group_id, topics=request.topics)
    return join_outcomes([_fetch(context, group, request.require_stable)], _answer_of_group)


def _name_once(request: OffsetFetchRequest) -> Slices[None]:
    """Remove duplicate partitions and groups.

    A duplicate partition takes four bytes in the request, but would repeat a commit's metadata in
    the response. A duplicate group name would repeat all of the group's offsets.
    """
    pace = Pace()
    request.topics = yield from _once(request.topics, pace)
    groups: dict[str, OffsetFetchGroup] = {}
    for group in request.groups:
        if pace.is_over():
            yield
        first = groups.setdefault(group.group_id, group)
        if first is not group and first.topics is not None and group.topics is not None:
            first.topics += group.topics
        elif group.topics is None:
            first.topics = None  # all of them
    for group in groups.values():
        group.topics = yield from _once(group.topics, pace)
    request.groups = list(groups.values())


def _once(
    topics: list[OffsetFetchTopic] | None, pace: Pace
) -> Slices[list[OffsetFetchTopic] | None]:
    if topics is None:
        if pace.is_over():
            yield
        return None
    named: dict[str, dict[int, None]] = {}
    for topic in topics:
        named.setdefault(topic.name, {}).update(dict.fromkeys(topic.partition_indexes))
        if pace.is_over():
            yield
    once = []
    for name, partitions in named.items():
        once.append(OffsetFetchTopic(name=name, partition_indexes=list(partitions)))
        if pace.is_over():
            yield
    return once


def _answer_of_group(answers: list[Message]) -> OffsetFetchResponse:
    answer = cast(OffsetFetchGroupResponse, answers[0])
    return OffsetFetchResponse(topics=answer.topics, error_code=answer.error_code)


def _fetch(context: Context, group: OffsetFetchGroup, require_stable: bool) -> ShardOutcome:
    version = context.version

    def failure(error: Error) -> OffsetFetchGroupResponse:
        answer = fetch_answer(group, error)
        if version >= _ERROR_OF_GROUP:
            answer.topics = []
        return answer

    if version == _IN_ZOOKEEPER:
        return failure(UnsupportedVersion)
    if not context.is_allowed(group.group_id):
        denied = failure(GroupAuthorizationFailed)
        denied.topics = []  # as in Kafka, even in the oldest versions, which have no group error
        return denied
    try:
        shard = context.node.groups.shard_of(group.group_id)
    except KafkaError as error:
        return failure(error)
    hidden: list[OffsetFetchTopic] | None = None
    if group.topics is not None:
        hidden = []
        shown: list[OffsetFetchTopic] = []
        for topic in group.topics:
            (shown if _may_see(context, topic.name) else hidden).append(topic)
        group.topics = shown
    outcome = shard.ask(
        lambda machine, ticket, _: machine.fetch(
            ticket, group, require_stable, shard.replica.high_watermark
        ),
        failure,
    )
    return join_outcomes([outcome], lambda answers: _screen(context, answers, hidden))


def _screen(
    context: Context, answers: list[Message], hidden: list[OffsetFetchTopic] | None
) -> OffsetFetchGroupResponse:
    """Return the response for the group, without the topics that the client may not describe.

    `hidden` contains the topics in the request that the client may not describe. It is None if the
    request asks for all topics.
    """
    answer = cast(OffsetFetchGroupResponse, answers[0])
    if answer.error_code:
        return answer
    if hidden is None:
        answer.topics = [topic for topic in answer.topics if _may_see(context, topic.name)]
        return answer
    code = TopicAuthorizationFailed.code
    for topic in hidden:
        partitions = [no_offset(number, code) for number in topic.partition_indexes]
        answer.topics.append(OffsetFetchTopicResponse(name=topic.name, partitions=partitions))
    return answer


def _may_see(context: Context, topic: str) -> bool:
    return context.allowed_to(Operation.DESCRIBE, ResourceType.TOPIC, topic)
