"""Checks topic names. A topic's name becomes part of directory names, so it is checked where a
topic is created, and again where its directory is created.
"""

from __future__ import annotations

import string

from barnabas.errors import InvalidTopic
from barnabas.types import TopicPartition

MAX_NAME_LENGTH = 249  # so that `<topic>-<partition>.<32 hex>-delete` stays a possible file name

_LEGAL_CHARACTERS = frozenset(f"{string.ascii_letters}{string.digits}._-")


def check_topic_name(name: str) -> None:
    """Raises InvalidTopic with the reason; a topic's name is also a directory's name."""
    if not name:
        raise InvalidTopic("a topic needs a name")
    if name in (".", ".."):
        raise InvalidTopic(f"topic name {name!r} is not allowed")
    if len(name) > MAX_NAME_LENGTH:
        raise InvalidTopic(
            f"topic name of {len(name)} characters: at most {MAX_NAME_LENGTH} are allowed"
        )
    if not _LEGAL_CHARACTERS.issuperset(name):
        raise InvalidTopic(
            f"topic name {name!r}: only ASCII letters, digits, '.', '_', '-' are allowed"
        )


def check_directory_name(name: TopicPartition) -> None:
    """Raises InvalidTopic unless a directory may be named after this partition, wherever the name
    comes from: a name with a slash would lead to another directory.
    """
    check_topic_name(name.topic)
    if name.partition < 0:
        raise InvalidTopic(f"topic {name.topic} has no partition {name.partition}")
