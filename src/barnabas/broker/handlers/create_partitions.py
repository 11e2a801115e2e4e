"""CreatePartitions (key 37): add partitions to topics. Existing records are not moved (TP-5)."""

from __future__ import annotations

from collections import Counter

from barnabas.broker.context import Context
from barnabas.broker.controller.deadline import within
from barnabas.broker.outcome import Outcome
from barnabas.broker.quotas.mutation_quota import MutationQuota, mutation_quota
from barnabas.broker.runtime.slices import in_slices
from barnabas.errors import InvalidRequest, KafkaError, RequestTimedOut, TopicAuthorizationFailed
from barnabas.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)

_STRICT_QUOTA = 3  # KIP-599


def handle(context: Context, request: CreatePartitionsRequest) -> Outcome:
    return _create_all(context, request)


async def _create_all(
    context: Context, request: CreatePartitionsRequest
) -> CreatePartitionsResponse:
    times: Counter[str] = Counter()
    wanted: dict[str, CreatePartitionsTopic] = {}
    async for topic in in_slices(request.topics):
        times[topic.name] += 1
        wanted[topic.name] = topic
    quota = mutation_quota(context, strict_from=_STRICT_QUOTA)
    results = []
    async for topic in in_slices(wanted.values()):
        result = CreatePartitionsTopicResult(name=topic.name)
        try:
            # As in Kafka, reject all rows of a duplicate name with a single result.
            if times[topic.name] > 1:
                raise InvalidRequest("Duplicate topic in request.")
            if not context.is_allowed(topic.name):
                raise TopicAuthorizationFailed(f"not allowed to alter {topic.name}")
            if quota.is_limited and not request.validate_only:
                await _check_quota(context, topic, quota)
            await _create(context, topic, request)
        except KafkaError as error:
            result.error_code, result.error_message = error.code, str(error)
        results.append(result)
    return CreatePartitionsResponse(throttle_time_ms=quota.throttle_ms, results=results)


async def _check_quota(
    context: Context, topic: CreatePartitionsTopic, quota: MutationQuota
) -> None:
    """Charge the client's quota.

    Raises ThrottlingQuotaExceeded, or the error if the request is invalid.
    """
    assignments = topic.assignments
    await context.node.controller.create_partitions(
        topic.name,
        topic.count,
        None if assignments is None else [each.broker_ids for each in assignments],
        validate_only=True,
    )
    quota.take(topic.count - len(context.node.image.topics[topic.name].partitions))


async def _create(
    context: Context, topic: CreatePartitionsTopic, request: CreatePartitionsRequest
) -> None:
    assignments = topic.assignments
    growth = context.node.controller.create_partitions(
        topic.name,
        topic.count,
        None if assignments is None else [each.broker_ids for each in assignments],
        validate_only=request.validate_only,
        cause=context.origin,
    )
    if request.validate_only:
        await growth
        return
    await within(request.timeout_ms, growth)
    # Kafka does not wait in this case. It returns REQUEST_TIMED_OUT, and the work continues.
    if request.timeout_ms <= 0:
        raise RequestTimedOut(
            "started; with a timeout of 0 the broker does not wait for it to complete"
        )
