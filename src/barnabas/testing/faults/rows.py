"""Finds the rows of a request or a response that refer to a topic, a partition or a group.

Kafka's messages use several field names for them, all listed in this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from barnabas.protocol.api import Api
from barnabas.protocol.message import Field, Message
from barnabas.protocol.wire import Array

TOPIC_FIELDS: Final = ("name", "topic", "topic_name")
PARTITION_FIELDS: Final = ("partition_index", "index", "partition", "partition_id")
ERROR_FIELDS: Final = ("error_code", "partition_error_code")

TOPIC_LISTS: Final = (
    "topic_data",
    "topics",
    "topic_names",
    "topic_partitions",
    "v3_and_below_topics",
    "resources",
)
PARTITION_LISTS: Final = ("partition_data", "partitions", "partition_indexes")
OUTER_LISTS: Final = ("groups", "transactions", "markers")  # each row contains topics

_TOPIC_RESOURCE: Final = 2  # a value of `resource_type`

REQUESTED: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "responses": ("topic_data", "topics", "topic_names", "resources"),
        "partition_responses": ("partition_data",),
        "topics": ("topics",),
        "partitions": ("partitions", "partition_indexes"),
        "results": ("resources", "topics", "groups_names"),
        "groups": ("groups",),
        "coordinators": ("coordinator_keys",),
        "members": ("members",),
        "markers": ("markers",),
        "transaction_states": ("transactional_ids",),
        "replica_election_results": ("topic_partitions",),
        "partition_result": ("partitions",),
        "results_by_transaction": ("transactions",),
        "topic_results": ("topics",),
        "results_by_partition": ("partitions",),
        "results_by_topic_v3_and_below": ("v3_and_below_topics",),
    }
)
"""Maps a list in a response to the lists in the request with corresponding rows.
"""


def row_class(made: Field) -> type[Message] | None:
    """Return the class of the rows in a list, or None if the field is a list of plain values or not
    a list.
    """
    if isinstance(made.type, Array):
        element = made.type.element
        if isinstance(element, type) and issubclass(element, Message):
            return element
    return None


def has_topics(api: Api) -> bool:
    """Return whether requests of this API contain topics."""
    return _reaches(api.request, TOPIC_LISTS)


def has_partitions(api: Api) -> bool:
    """Return whether requests of this API contain partitions of topics."""
    return has_topics(api) and _reaches(api.request, PARTITION_LISTS)


def _reaches(cls: type[Message], names: tuple[str, ...]) -> bool:
    """Return whether the message contains any of these lists, either directly or within topics or
    lists of topics."""
    for made in cls.fields:
        if made.name in names:
            return True
        inner = row_class(made)
        is_on_the_way = made.name in (*TOPIC_LISTS, *OUTER_LISTS)
        if is_on_the_way and inner is not None and _reaches(inner, names):
            return True
    return False


def topic_of(row: Any, topic_names: Mapping[bytes, str]) -> str | None:
    """Return the topic of a row, found by name or id; None if the row concerns no topic."""
    # Up to version 5, DeleteTopics has a list of plain names.
    if isinstance(row, str):
        return row
    # The row of a broker's configs has a name, too, but it is not the name of a topic.
    if getattr(row, "resource_type", _TOPIC_RESOURCE) != _TOPIC_RESOURCE:
        return None
    for name in (*TOPIC_FIELDS, "resource_name"):
        topic: str | None = getattr(row, name, None)
        if topic:
            return topic
    # Since Fetch 13 and DeleteTopics 6, a topic may be identified only by its id (KIP-516).
    return topic_names.get(bytes(getattr(row, "topic_id", b"")))


def partition_of(row: Any) -> int:
    """Return the partition of a row. The row is either a number or a message that contains a
    number.
    """
    if isinstance(row, int):
        return row
    for name in PARTITION_FIELDS:
        partition: int | None = getattr(row, name, None)
        if partition is not None:
            return partition
    raise ValueError(f"{type(row).__name__} names no partition")
