"""Defines all configs, with the same names as in Kafka, and reads their values from all sources.

For each key, this package contains the type, the default, the bounds and a description (as in Kafka
3.9 in ZooKeeper mode). A setting takes effect, causes a warning, or is rejected; it is never
silently ignored.
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
