"""Our tables against what a real Kafka 3.9.1 with ZooKeeper answered to DescribeConfigs.

`kafka-3.9.1.json` beside this file holds its answer: of brokers name, type, default, whether it is
a secret, and for whom it can be changed (by trying); of topics name, type, default, and the broker
config that gives the default, where it has one with a default of its own.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from barnabas.broker.configs.effective_config import broker_configs, topic_configs
from barnabas.config import BROKER_KEYS, TOPIC_KEYS, BrokerConfig
from barnabas.config.dynamic_keys import DYNAMIC_KEYS, scope_of

# A broker that was given no id takes 0, where Kafka takes one from ZooKeeper.
OTHER_DEFAULTS = {"broker.id": "0"}
# Listeners cannot be opened and closed while Barnabas runs, and it says so.
OTHER_SCOPES = dict.fromkeys(
    ("advertised.listeners", "listener.security.protocol.map", "listeners"), "read-only"
)


@pytest.fixture(scope="module")
def kafka() -> dict[str, list[Any]]:
    answer: dict[str, list[Any]] = json.loads(
        (Path(__file__).parent / "kafka-3.9.1.json").read_text()
    )
    return answer


def test_every_broker_config_is_kafkas(
    kafka: dict[str, list[Any]], record_property: Callable[[str, object], None]
) -> None:
    """UX-3: names, types, defaults, secrets, and what can be changed."""
    theirs = {
        name: (kind, OTHER_DEFAULTS.get(name, default), secret, OTHER_SCOPES.get(name, scope))
        for name, kind, default, secret, scope in kafka["broker"]
    }
    ours = {
        each.key.name: (
            each.key.type,
            each.key.text(each.key.default),
            each.key.is_sensitive,
            scope_of(each.key.name).value,
        )
        for each in broker_configs(BrokerConfig({"log.dir": "/d"}))
        if not each.key.name.startswith("barnabas.")
    }
    assert ours == theirs
    record_property("broker_configs", len(theirs))
    print(f"{len(theirs)} broker configs agree with Kafka 3.9.1")
    assert len(theirs) == 314


def test_every_topic_config_is_kafkas(
    kafka: dict[str, list[Any]], record_property: Callable[[str, object], None]
) -> None:
    """UX-3"""
    theirs = {name: (kind, default, first) for name, kind, default, first in kafka["topic"]}
    ours = {}
    for each in topic_configs(BrokerConfig({"log.dir": "/d"}), {}):
        first = each.synonyms[0].name if each.synonyms else None
        ours[each.key.name] = (each.key.type, each.value, first)
    assert ours == theirs
    record_property("topic_configs", len(theirs))
    print(f"{len(theirs)} topic configs agree with Kafka 3.9.1")
    assert len(theirs) == len(TOPIC_KEYS) == 36


def test_what_can_be_changed_is_there() -> None:
    assert set(DYNAMIC_KEYS) <= set(BROKER_KEYS)
