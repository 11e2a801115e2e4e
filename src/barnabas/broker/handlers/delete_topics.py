"""DeleteTopics (key 20): by name, or by id from version 6 on (KIP-516)."""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.broker.router import Outcome
from barnabas.errors import (
    KafkaError,
    TopicAuthorizationFailed,
    TopicDeletionDisabled,
    UnknownTopicId,
)
from barnabas.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)

_BY_NAME_OR_ID = 6
_NO_TOPIC_ID = bytes(16)


def handle(context: Context, request: DeleteTopicsRequest) -> Outcome:
    return _delete_all(context, request)


async def _delete_all(context: Context, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    wanted: list[tuple[str | None, bytes]]
    if context.version >= _BY_NAME_OR_ID:
        wanted = [(state.name, state.topic_id) for state in request.topics]
    else:
        wanted = [(name, _NO_TOPIC_ID) for name in request.topic_names]
    results = []
    for name, topic_id in wanted:
        try:
            results.append(await _delete(context, name, topic_id))
        except KafkaError as error:
            results.append(
                DeletableTopicResult(
                    name=name,
                    topic_id=topic_id,
                    error_code=error.code,
                    error_message=str(error) or None,
                )
            )
    return DeleteTopicsResponse(responses=results)


async def _delete(context: Context, name: str | None, topic_id: bytes) -> DeletableTopicResult:
    image = context.node.image
    if name is None:
        name = image.topic_names.get(topic_id)
        if name is None:
            raise UnknownTopicId("no topic has this id")
    if not context.allowed(name):
        raise TopicAuthorizationFailed(f"not allowed to delete {name}")
    if not context.node.config.bool("delete.topic.enable"):
        raise TopicDeletionDisabled("delete.topic.enable is false")
    topic = image.topics.get(name)
    await context.node.controller.delete_topic(name)
    return DeletableTopicResult(
        name=name, topic_id=topic.topic_id if topic is not None else _NO_TOPIC_ID
    )
