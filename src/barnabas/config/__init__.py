"""Reads every configuration under Kafka's names: tables, values and sources.

The package owns the keys, their types, defaults and bounds (Kafka 3.9 in ZooKeeper mode), and a
sentence about each. A setting takes effect, gives a warning or is rejected; it is never silently
ignored.
"""

from barnabas.config.broker import BrokerConfig
from barnabas.config.broker_keys import BROKER_KEYS, inert_warning, key_of
from barnabas.config.environment import environment_warning, from_environment
from barnabas.config.key import ConfigKey, ConfigValue
from barnabas.config.properties import load_properties, parse_properties
from barnabas.config.topic_keys import TOPIC_KEYS, LogConfig, topic_warnings

__all__ = [
    "BROKER_KEYS",
    "TOPIC_KEYS",
    "BrokerConfig",
    "ConfigKey",
    "ConfigValue",
    "LogConfig",
    "environment_warning",
    "from_environment",
    "inert_warning",
    "key_of",
    "load_properties",
    "parse_properties",
    "topic_warnings",
]
