"""OffsetDelete: a group forgets (KIP-496)."""

from __future__ import annotations

import pytest

from barnabas.errors import (
    GroupAuthorizationFailed,
    GroupIdNotFound,
    InvalidGroupId,
    TopicAuthorizationFailed,
    UnknownTopicOrPartition,
)
from tests.kit.broker.offsets import commit, committed, delete
from tests.kit.broker.topics import create
from tests.kit.raw_client import RawClient

pytestmark = pytest.mark.usefixtures("offsets_topic")


def test_deleted_offsets_are_gone_and_others_are_not(client: RawClient, topic: str) -> None:
    commit(client, "g", {(topic, 0): 1, (topic, 1): 2})
    assert delete(client, "g", (topic, 0)) == (0, {(topic, 0): 0})
    assert committed(client, "g", topic, 0, 1) == [-1, 2]
    assert delete(client, "g", (topic, 0)) == (0, {(topic, 0): 0})


def test_a_group_goes_with_its_last_offset(client: RawClient, topic: str) -> None:
    commit(client, topic, {(topic, 0): 1})
    assert delete(client, topic, (topic, 0), (topic, 1)) == (0, {(topic, 0): 0, (topic, 1): 0})
    assert delete(client, topic, (topic, 0)) == (GroupIdNotFound.code, {})


def test_what_does_not_exist(client: RawClient, topic: str) -> None:
    commit(client, topic, {(topic, 0): 1})
    unknown = UnknownTopicOrPartition.code
    assert delete(client, topic, (topic, 9), ("no-such-topic", 0), (topic, 1)) == (
        0,
        {(topic, 1): 0, (topic, 9): unknown, ("no-such-topic", 0): unknown},
    )
    assert committed(client, topic, topic, 0) == [1]
    assert delete(client, "no-such-group", (topic, 9)) == (GroupIdNotFound.code, {})
    assert delete(client, "", (topic, 0)) == (InvalidGroupId.code, {})


def test_what_the_caller_may_not(client: RawClient, topic: str, deny) -> None:  # type: ignore[no-untyped-def]
    """SE-1."""
    hidden = f"{topic}-hidden"
    create(client, hidden)
    commit(client, topic, {(topic, 0): 1, (hidden, 0): 1})
    deny(hidden, "secret")
    assert delete(client, "secret", (topic, 0)) == (GroupAuthorizationFailed.code, {})
    assert delete(client, topic, (hidden, 0), (topic, 0)) == (
        0,
        {(topic, 0): 0, (hidden, 0): TopicAuthorizationFailed.code},
    )
    deny()
    assert committed(client, topic, hidden, 0) == [1]
