"""Profiles: each setting is one of ours, has an effect, and differs from the default."""

from __future__ import annotations

import pytest

from barnabas.config import BROKER_KEYS, BrokerConfig
from barnabas.config.profiles import PROFILES, profile
from barnabas.errors import ConfigError


@pytest.mark.parametrize("name", PROFILES)
def test_a_profile_has_only_settings_that_change_something(name: str) -> None:
    given = BrokerConfig(profile(name))
    for setting in profile(name):
        assert not BROKER_KEYS[setting].inert
        assert given.value(setting) != BROKER_KEYS[setting].default_value


def test_kafka_2_3() -> None:
    config = BrokerConfig(profile("kafka-2.3"))
    assert config.int("replica.lag.time.max.ms") == 10_000
    assert config.int("zookeeper.session.timeout.ms") == 6_000
    assert config.log_config().max_message_bytes == 1_000_012


def test_an_unknown_profile_names_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"'2\.3' is not a profile; use kafka-2\.3"):
        profile("2.3")
