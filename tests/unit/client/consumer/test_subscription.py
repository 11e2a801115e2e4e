"""CO-2, TP-8: names and patterns."""

from __future__ import annotations

import re

import pytest

from barnabas.client.consumer.subscription import RebalanceListener, Subscription
from barnabas.types import TopicPartition

TOPICS = {"orders": False, "orders-2": False, "__consumer_offsets": True, "other": False}


def test_a_pattern_has_to_match_the_whole_name() -> None:
    """CO-2: sorted, whatever the order of the answer."""
    subscription = Subscription(re.compile("o.*s"), None, exclude_internal=True)
    assert subscription.names == ()
    assert subscription.match(TOPICS)
    assert subscription.names == ("orders",)
    assert not subscription.match(dict(reversed(TOPICS.items()))), "nothing changed"
    assert subscription.match({"orchids": False, **TOPICS})
    assert subscription.names == ("orchids", "orders")
    assert subscription.match({})
    assert subscription.names == ()


def test_internal_topics_only_where_they_are_wanted() -> None:
    """TP-8: `exclude.internal.topics`; a topic that is not internal may have such a name."""
    everything = {**TOPICS, "__mine": False}
    guarded = Subscription(re.compile(".*"), None, exclude_internal=True)
    guarded.match(everything)
    assert guarded.names == ("__mine", "orders", "orders-2", "other")
    open_ = Subscription(re.compile(".*"), None, exclude_internal=False)
    open_.match(everything)
    assert open_.names == tuple(sorted(everything))


def test_names_are_what_they_are() -> None:
    """CO-2: each once; an internal topic by its name is no mistake (TP-8)."""
    subscription = Subscription(["b", "a", "b", "__consumer_offsets"], None, exclude_internal=True)
    assert subscription.names == ("b", "a", "__consumer_offsets")
    assert not subscription.match(TOPICS)
    with pytest.raises(TypeError, match=r"\['a'\]"):
        Subscription("a", None, exclude_internal=True)
    for nothing in ([], [""]):
        with pytest.raises(ValueError, match=r"nothing to subscribe|is not a valid topic"):
            Subscription(nothing, None, exclude_internal=True)


def test_lost_partitions_are_revoked_unless_the_listener_minds() -> None:
    """CO-2"""
    revoked: list[object] = []

    class Listener(RebalanceListener):
        def on_partitions_revoked(self, partitions: object) -> None:
            revoked.append(partitions)

    partitions = [TopicPartition("t", 0)]
    assert Listener().on_partitions_lost(partitions) is None
    assert Listener().on_partitions_assigned(partitions) is None
    assert revoked == [partitions]
