"""Formats protocol errors as Kafka's tools do, with the exception class and the message. Pure.

The default message for a code is the one in Kafka's client.
"""

from __future__ import annotations

import re
from typing import Final

from barnabas.errors import BarnabasError, KafkaError

_PACKAGE = "org.apache.kafka.common.errors"

_CLASSES: Final = {
    "TOPIC_ALREADY_EXISTS": "TopicExistsException",
    "INVALID_TOPIC_EXCEPTION": "InvalidTopicException",
    "INVALID_CONFIG": "InvalidConfigurationException",
    "NON_EMPTY_GROUP": "GroupNotEmptyException",
    "UNKNOWN_SERVER_ERROR": "UnknownServerException",
    "REQUEST_TIMED_OUT": "TimeoutException",
    "MESSAGE_TOO_LARGE": "RecordTooLargeException",
    "CORRUPT_MESSAGE": "CorruptRecordException",
}
"""Maps codes to the classes that are not named after their code."""

_MESSAGES: Final = {
    "NON_EMPTY_GROUP": "The group is not empty.",
    "GROUP_ID_NOT_FOUND": "The group id does not exist.",
    "GROUP_SUBSCRIBED_TO_TOPIC": (
        "Deleting offsets of a topic is forbidden while the consumer group is actively subscribed "
        "to it."
    ),
    "UNKNOWN_TOPIC_OR_PARTITION": "This server does not host this topic-partition.",
    "OFFSET_OUT_OF_RANGE": (
        "The requested offset is not within the range of offsets maintained by the server."
    ),
    "ELECTION_NOT_NEEDED": "Leader election not needed for topic partition.",
    "PREFERRED_LEADER_NOT_AVAILABLE": "The preferred leader was not available.",
    "ELIGIBLE_LEADERS_NOT_AVAILABLE": "Eligible topic partition leaders are not available.",
    "NO_REASSIGNMENT_IN_PROGRESS": "No partition reassignment is in progress.",
    "POLICY_VIOLATION": "Request parameters do not satisfy the configured policy.",
}


_SUBJECT: Final = re.compile(r"\A(?:configs of )?(?:topic|group|broker) (?:'[^']*'|\d+): ")


def java_class(error: KafkaError) -> str:
    """Return the Java class, such as `org.apache.kafka.common.errors.TopicExistsException`."""
    # For example, NOT_LEADER_OR_FOLLOWER becomes NotLeaderOrFollowerException. `_CLASSES` lists the
    # classes that do not follow this rule.
    words = error.name.split("_")
    own = "".join(word.capitalize() for word in words) + "Exception"
    return f"{_PACKAGE}.{_CLASSES.get(error.name, own)}"


def java_message(error: BarnabasError) -> str:
    """Return the message that Kafka's client would show."""
    text = str(error)
    if not isinstance(error, KafkaError):
        return text
    # The broker sent no message, so our text is generic, and Kafka's client words it differently.
    if text.endswith(error.meaning):
        return _MESSAGES.get(error.name, error.meaning)
    return _SUBJECT.sub("", text, 1)  # our client adds the source, unlike Kafka's tools


def java_text(error: BarnabasError) -> str:
    """Return the class and the message in the form in which Java prints an exception."""
    if isinstance(error, KafkaError):
        return f"{java_class(error)}: {java_message(error)}"
    return java_message(error)
