"""DeleteTopics (key 20): deletes topics, by name or, from version 6 on, by id (KIP-516).

Version 4 is flexible, and version 5 adds error messages.
"""

from __future__ import annotations

from barnabas.protocol.message import Message, field
from barnabas.protocol.wire import INT16, INT32, STRING, UUID, Array


class DeleteTopicState(Message):
    name: str | None = field(STRING, versions="6+", nullable="6+", default=None)
    topic_id: bytes = field(UUID, versions="6+")


class DeleteTopicsRequest(Message, flexible="4+"):
    # KIP-516: a topic is identified either by its name or by its id.
    topics: list[DeleteTopicState] = field(Array(DeleteTopicState), versions="6+")
    topic_names: list[str] = field(Array(STRING), versions="0-5", ignorable=True)
    timeout_ms: int = field(INT32)


class DeletableTopicResult(Message):
    name: str | None = field(STRING, nullable="6+")
    topic_id: bytes = field(UUID, versions="6+", ignorable=True)
    error_code: int = field(INT16)
    error_message: str | None = field(
        STRING, versions="5+", nullable="5+", ignorable=True, default=None
    )


class DeleteTopicsResponse(Message, flexible="4+"):
    throttle_time_ms: int = field(INT32, versions="1+", ignorable=True)
    responses: list[DeletableTopicResult] = field(Array(DeletableTopicResult))
