"""Creates missing topics automatically when a client refers to them (TP-6).

Automatic creation requires `auto.create.topics.enable`, and uses `num.partitions` and
`default.replication.factor`. All missing topics that a request names are created together and
charged to the client's controller mutation quota. The internal topics are created by the
coordinators (see `broker.coordinator.internal_topics`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from barnabas.broker.controller.deadline import within
from barnabas.broker.quotas.mutation_quota import mutation_quota
from barnabas.cluster.layout import INTERNAL_TOPICS
from barnabas.controller.topics import NewTopic, check_new_partitions
from barnabas.errors import (
    KafkaError,
    LeaderNotAvailable,
    NotController,
    PolicyViolation,
    RequestTimedOut,
    TopicAlreadyExists,
    TopicAuthorizationFailed,
)
from barnabas.security.acl import CLUSTER_NAME, Operation, ResourceType

if TYPE_CHECKING:
    from barnabas.broker.context import Context

_CREATION_MS = 5000  # how long a Metadata request waits for topics on a slow disk

Failures = dict[str, KafkaError]


def is_enabled(context: Context) -> bool:
    return context.node.config.bool("auto.create.topics.enable")


def is_missing(context: Context, name: str) -> bool:
    """Return whether the topic is missing and the client may know that it is."""
    return (
        name not in context.node.image.topics
        and name not in INTERNAL_TOPICS
        and context.could(Operation.DESCRIBE, ResourceType.TOPIC, name)
    )


async def create_topics(context: Context, missing: Sequence[str]) -> Failures:
    """Create the topics that the client is authorized to create, and return errors for all other
    topics.
    """
    failures: Failures = {}
    allowed = []
    for name in missing:
        # SE-1: the client needs CREATE on the cluster or on this topic.
        if _may_create(context, name):
            allowed.append(name)
        else:
            failures[name] = TopicAuthorizationFailed()
    config = context.node.config
    partitions = config.int("num.partitions")
    replication_factor = config.int("default.replication.factor")
    try:
        check_new_partitions(len(allowed) * partitions)
    except PolicyViolation as error:  # applies to all topics together, as in CreateTopics
        return failures | dict.fromkeys(allowed, error.with_traceback(None))
    cause = f"auto.create.topics.enable is true, and {context.origin} named it"
    new = [NewTopic(name, partitions, replication_factor, cause=cause) for name in allowed]
    try:
        outcomes = await within(_CREATION_MS, context.node.controller.auto_create_topics(new))
    except NotController:
        return failures | dict.fromkeys(allowed, LeaderNotAvailable())
    except RequestTimedOut:
        # Kafka returns this error while it is creating a topic, and the client retries.
        outcomes = [LeaderNotAvailable()] * len(new)
    quota = mutation_quota(context)
    for topic, outcome in zip(new, outcomes, strict=True):
        # Charge for the topic if it has been created or is being created (KIP-599).
        if not isinstance(outcome, KafkaError) or isinstance(outcome, LeaderNotAvailable):
            quota.take(topic.partitions)
        if isinstance(outcome, TopicAlreadyExists):
            # Another client created the topic, so it has a leader or will have one soon.
            failures[topic.name] = LeaderNotAvailable()
        elif isinstance(outcome, KafkaError):
            failures[topic.name] = outcome
    return failures


def _may_create(context: Context, name: str) -> bool:
    return context.may(Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME) or context.allowed_to(
        Operation.CREATE, ResourceType.TOPIC, name
    )
