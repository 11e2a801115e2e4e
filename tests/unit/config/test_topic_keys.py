"""What is said of topic configs that change nothing, and which texts they refuse."""

from __future__ import annotations

import pytest

from barnabas.config import LogConfig, topic_warnings
from barnabas.errors import ConfigError


def test_settings_without_effect_are_named_with_the_reason() -> None:
    """UX-3"""
    settings = {
        "retention.ms": "5",
        "min.cleanable.dirty.ratio": "0.1",
        "remote.storage.enable": "true",
        "cleanup.policy": "compact,delete",
        "left.by.another.version": "1",
    }
    assert topic_warnings(settings) == [
        "remote.storage.enable has no effect: there is no tiered storage",
    ]
    assert topic_warnings({"cleanup.policy": "delete"}) == []


@pytest.mark.parametrize("text", ["*", "", "0:1", "0:1,12:3"])
def test_throttled_replicas(text: str) -> None:
    LogConfig().with_overrides({"leader.replication.throttled.replicas": text})


@pytest.mark.parametrize("text", ["x", "0", "0:1,", "0:1;1:2", "*,0:1"])
def test_what_are_no_throttled_replicas(text: str) -> None:
    for name in ("leader", "follower"):
        with pytest.raises(ConfigError, match=f"{name}.replication.throttled.replicas"):
            LogConfig().with_overrides({f"{name}.replication.throttled.replicas": text})


def test_a_version_must_look_like_one() -> None:
    for text in ("3.0-IV1", "0.10.0", "2.8"):
        LogConfig().with_overrides({"message.format.version": text})
    with pytest.raises(ConfigError, match=r"message\.format\.version: 'newest' is not a version"):
        LogConfig().with_overrides({"message.format.version": "newest"})
