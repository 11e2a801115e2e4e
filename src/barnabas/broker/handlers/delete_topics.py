"""DeleteTopics (key 20): delete topics by name or, from version 6 on, by id (KIP-516).

Each result contains the name or the id that was given in the request. If a topic was deleted by
name, its result does not contain the id.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.broker.controller.deadline import within
from barnabas.broker.outcome import Outcome
from barnabas.broker.quotas.mutation_quota import MutationQuota, mutation_quota
from barnabas.broker.runtime.slices import Pace, Slices, in_slices, run_slices
from barnabas.errors import (
    InvalidRequest,
    KafkaError,
    NotController,
    RequestTimedOut,
    ThrottlingQuotaExceeded,
    TopicAuthorizationFailed,
    TopicDeletionDisabled,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from barnabas.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from barnabas.security.acl import Operation, ResourceType

_BY_NAME_OR_ID = 6
_KNOWS_DISABLED = 3
_STRICT_QUOTA = 5  # KIP-599
_NO_TOPIC_ID = bytes(16)


def handle(context: Context, request: DeleteTopicsRequest) -> Outcome:
    if context.version >= _BY_NAME_OR_ID:
        wanted = request.topics
    else:
        wanted = [DeleteTopicState(name=name) for name in request.topic_names]
    refusal = _refusal(context, wanted)
    if refusal is not None:
        return run_slices(_refuse_all(wanted, refusal))
    return _delete_all(context, wanted, request.timeout_ms)


def _refuse_all(
    wanted: list[DeleteTopicState], refusal: KafkaError
) -> Slices[DeleteTopicsResponse]:
    responses, pace = [], Pace()
    for each in wanted:
        responses.append(_result(each.name, each.topic_id, refusal))
        if pace.is_over():
            yield
    return DeleteTopicsResponse(responses=responses)


def _refusal(context: Context, wanted: list[DeleteTopicState]) -> KafkaError | None:
    """Return the error for the whole request, or None if the topics are checked one by one."""
    # KIP-322 introduced a separate error code in version 3. Earlier versions get INVALID_REQUEST.
    if not context.node.config.bool("delete.topic.enable"):
        reason = "delete.topic.enable is false"
        return (
            TopicDeletionDisabled(reason)
            if context.version >= _KNOWS_DISABLED
            else InvalidRequest(reason)
        )
    # As in Kafka with ZooKeeper, the response is sent once the topic is deleted on all brokers,
    # which only the controller knows.
    if not context.node.controller.is_active:
        return NotController(
            "this broker is not the controller, and only the controller deletes topics"
        )
    if any(each.name is not None and each.topic_id != _NO_TOPIC_ID for each in wanted):
        return InvalidRequest("Topic name and topic ID can not both be specified.")
    return None


async def _delete_all(
    context: Context, wanted: list[DeleteTopicState], timeout_ms: int
) -> DeleteTopicsResponse:
    image, quota = context.node.image, mutation_quota(context, strict_from=_STRICT_QUOTA)
    results = []
    deleted: dict[str, list[DeletableTopicResult]] = {}
    async for each in in_slices(wanted):
        is_by_id = each.topic_id != _NO_TOPIC_ID
        name = image.topic_names.get(each.topic_id) if is_by_id else each.name
        refusal = _why_not(context, name, is_by_id=is_by_id)
        # If a topic is listed twice, or both by name and by id, it is charged and deleted only
        # once. All its rows get the same result.
        if refusal is None and name is not None and name not in deleted:
            refusal = _charge(quota, len(image.topics[name].partitions))
        result = _result(name, each.topic_id, refusal)
        if result.error_code == 0:
            assert name is not None
            deleted.setdefault(name, []).append(result)
        elif is_by_id and not (
            name and context.could(Operation.DESCRIBE, ResourceType.TOPIC, name)
        ):
            result.name = None  # an id is not secret, but a name is
        results.append(result)
    if deleted:
        outcomes = await _delete(context, list(deleted), timeout_ms)
        for same, outcome in zip(deleted.values(), outcomes, strict=True):
            for result in same:
                _set_error(result, outcome)
    return DeleteTopicsResponse(throttle_time_ms=quota.throttle_ms, responses=results)


def _charge(quota: MutationQuota, partitions: int) -> KafkaError | None:
    try:
        quota.take(partitions)
    except ThrottlingQuotaExceeded as error:
        return error.with_traceback(None)  # it would keep the request in memory
    return None


def _why_not(context: Context, name: str | None, *, is_by_id: bool) -> KafkaError | None:
    if name is None:
        return UnknownTopicId() if is_by_id else UnknownTopicOrPartition()
    # As in Kafka, always check and log both permissions.
    may_see = context.allowed_to(Operation.DESCRIBE, ResourceType.TOPIC, name)
    may_delete = context.is_allowed(name)
    if is_by_id and not may_see:
        return TopicAuthorizationFailed("not allowed to delete this topic")
    if not may_delete:
        return TopicAuthorizationFailed(f"not allowed to delete {name}")
    if name not in context.node.image.topics:
        return UnknownTopicOrPartition()
    return None


async def _delete(context: Context, names: list[str], timeout_ms: int) -> list[KafkaError | None]:
    try:
        outcomes = await within(
            timeout_ms, context.node.controller.delete_topics(names, context.origin)
        )
    except KafkaError as error:
        return [error] * len(names)
    # As for CreateTopics, Kafka returns this error if the timeout is 0, while the work continues.
    if timeout_ms > 0:
        return outcomes
    started = RequestTimedOut(
        "started; with a timeout of 0 the broker does not wait for it to complete"
    )
    return [outcome or started for outcome in outcomes]


def _result(name: str | None, topic_id: bytes, error: KafkaError | None) -> DeletableTopicResult:
    result = DeletableTopicResult(name=name, topic_id=topic_id)
    _set_error(result, error)
    return result


def _set_error(result: DeletableTopicResult, error: KafkaError | None) -> None:
    if error is not None:
        result.error_code, result.error_message = error.code, str(error)
