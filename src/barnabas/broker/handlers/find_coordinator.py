"""FindCoordinator (key 10): find the coordinator of a group or transactional id (GC-1).

The coordinator is the leader of the partition in which the key is stored. The internal topic is
created for the first request. The response is not sent until the topic exists, so that the client's
next request succeeds.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.broker.controller.deadline import within
from barnabas.broker.outcome import Outcome
from barnabas.broker.quotas.mutation_quota import mutation_quota
from barnabas.broker.runtime.slices import Pace, Slices, run_slices
from barnabas.cluster.layout import GROUP_TOPIC, TRANSACTION_TOPIC
from barnabas.coordinator.state_partition import partition_of
from barnabas.errors import (
    CoordinatorNotAvailable,
    GroupAuthorizationFailed,
    InvalidRequest,
    KafkaError,
    TransactionalIdAuthorizationFailed,
)
from barnabas.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from barnabas.security.acl import Operation, ResourceType

_BATCHED = 4  # KIP-699: several keys in one request
_GROUP, _TRANSACTION = 0, 1
_TOPICS = {_GROUP: GROUP_TOPIC, _TRANSACTION: TRANSACTION_TOPIC}
_KINDS = {_GROUP: ResourceType.GROUP, _TRANSACTION: ResourceType.TRANSACTIONAL_ID}
_CREATION_MS = 5000


def handle(context: Context, request: FindCoordinatorRequest) -> Outcome:
    topic = _TOPICS.get(request.key_type)
    if topic is not None and topic not in context.node.image.topics:
        return run_slices(_create_first(context, request, topic))
    return run_slices(_answer(context, request))


def _create_first(context: Context, request: FindCoordinatorRequest, topic: str) -> Slices[Outcome]:
    """Create the topic if the client is authorized.

    Other clients do not learn whether it exists.
    """
    keys = request.coordinator_keys if context.version >= _BATCHED else [request.key]
    kind, pace = _KINDS[request.key_type], Pace()
    for key in keys:
        if context.could(Operation.DESCRIBE, kind, key):
            return _create_topic_and_answer(context, request, topic)
        if pace.is_over():
            yield
    return (yield from _answer(context, request))


async def _create_topic_and_answer(
    context: Context, request: FindCoordinatorRequest, topic: str
) -> FindCoordinatorResponse:
    node = context.node
    # Before its first metadata update, this broker cannot know whether the topic exists.
    await node.view.until_metadata()
    reason = ""
    try:
        if topic not in node.image.topics:
            charge = mutation_quota(context).take
            made = node.internal_topics.make(topic, node.config, charge, context.origin)
            await within(_CREATION_MS, made)
    except KafkaError as error:
        # The client gets COORDINATOR_NOT_AVAILABLE, which is retriable. The message contains the
        # reason.
        reason = str(error)
    answer = run_slices(_answer(context, request, reason))
    return answer if isinstance(answer, FindCoordinatorResponse) else await answer


def _answer(
    context: Context, request: FindCoordinatorRequest, missing: str = ""
) -> Slices[FindCoordinatorResponse]:
    """Build the response. `missing` is the reason why there is no internal topic."""
    if context.version >= _BATCHED:
        pace = Pace()
        coordinators = []
        for key in dict.fromkeys(request.coordinator_keys):
            coordinators.append(_find(context, request.key_type, key, missing))
            if pace.is_over():
                yield
        return FindCoordinatorResponse(coordinators=coordinators)
    found = _find(context, request.key_type, request.key, missing)
    return FindCoordinatorResponse(
        error_code=found.error_code,
        error_message=found.error_message or "NONE",  # as in Kafka
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


def _find(context: Context, key_type: int, key: str, missing: str) -> Coordinator:
    error = _refusal(context, key_type, key)
    if error is None:
        topic = context.node.image.topics.get(_TOPICS[key_type])
        if topic is not None:
            # Use the topic's actual partition count, because `offsets.topic.num.partitions` applies
            # only when the topic is created (GC-1).
            number = partition_of(key, len(topic.partitions))
            leader = topic.partitions[number].leader
            broker = context.node.image.brokers.get(leader)
            if broker is not None:
                host, port = context.address_of(broker)
                return Coordinator(key=key, node_id=leader, host=host, port=port, error_message="")
            missing = f"{topic.name}-{number} has no leader; retry"
        error = CoordinatorNotAvailable(missing or "the coordinator is not known yet; retry")
    return Coordinator(
        key=key, node_id=-1, port=-1, error_code=error.code, error_message=str(error)
    )


def _refusal(context: Context, key_type: int, key: str) -> KafkaError | None:
    """Return the error if the key is not valid or the client is not authorized."""
    if key_type == _GROUP:
        if not context.is_allowed(key):
            return GroupAuthorizationFailed(f"not allowed to describe group {key!r}")
    elif key_type == _TRANSACTION:
        if not context.allowed_to(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, key):
            return TransactionalIdAuthorizationFailed(f"not allowed to describe {key!r}")
    else:
        return InvalidRequest(f"unknown key type {key_type}: use 0 (group) or 1 (transactional id)")
    return None
