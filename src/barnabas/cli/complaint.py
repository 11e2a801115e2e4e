"""Writes each error or warning for the user on one line, together with any advice."""

from __future__ import annotations

import sys

from barnabas.client.errors import NoBrokersAvailable
from barnabas.errors import (
    GroupAuthorizationFailed,
    GroupIdNotFound,
    GroupSubscribedToTopic,
    InvalidReplicationFactor,
    KafkaError,
    NonEmptyGroup,
    SecurityDisabled,
    TopicAlreadyExists,
    TopicAuthorizationFailed,
    TransactionalIdNotFound,
    UnknownTopicOrPartition,
)

_RULES = "`barnabas acls explain` tells an administrator why, and which rule would allow it"

_ADVICE: tuple[tuple[type[Exception], str], ...] = (
    (NoBrokersAvailable, "is --bootstrap-server correct? `barnabas server start` runs a broker"),
    (
        UnknownTopicOrPartition,
        "`barnabas topics list` shows the topics, and `barnabas topics create` creates one",
    ),
    (TopicAlreadyExists, "to accept an existing topic, use --if-not-exists"),
    (InvalidReplicationFactor, "a topic cannot have more replicas than there are brokers"),
    (GroupIdNotFound, "`barnabas groups list` shows the groups"),
    (NonEmptyGroup, "stop its members first: `barnabas groups describe --members` shows them"),
    (GroupSubscribedToTopic, "stop the members that read it first"),
    (TopicAuthorizationFailed, _RULES),
    (GroupAuthorizationFailed, _RULES),
    (
        SecurityDisabled,
        "the brokers have no authorizer: `barnabas server start --secure` runs a broker that has "
        "one, and authorizer.class.name adds one to other brokers",
    ),
    (TransactionalIdNotFound, "`barnabas transactions list` shows the transactional ids"),
)


def complain(who: str, what: Exception | str) -> None:
    """Write `who: what` to standard error, on one line."""
    text = what if isinstance(what, str) else explain(what)
    sys.stderr.write(f"{who}: {' '.join(text.split())}\n")


def warn(who: str, what: str) -> None:
    """Write `who: warning: what` to standard error, on one line. The command continues."""
    complain(who, f"warning: {what}")


def explain(error: Exception) -> str:
    """Return the text of an error, its name in Kafka's protocol, and advice."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {(error.strerror or str(error)).lower()}"
    text = str(error).rstrip(".")
    if isinstance(error, KafkaError):
        text = f"{text} ({error.name})"
    # A note was added where the cause was known, so it takes precedence over the advice for the
    # error's class.
    advice = ", ".join(getattr(error, "__notes__", ())) or _advice(error)
    return f"{text}; {advice}" if advice else text


def _advice(error: Exception) -> str:
    if "set security.protocol" in str(error):
        return ""  # a broker responded, and its message already has advice
    return next((advice for kind, advice in _ADVICE if isinstance(error, kind)), "")
