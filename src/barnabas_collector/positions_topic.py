"""Creates the topic of the positions, and refuses one that would lose them."""

from __future__ import annotations

import logging

from barnabas.client.admin.admin import Admin, NewTopic
from barnabas.client.admin.configs import TOPIC, ConfigResource
from barnabas.errors import ConfigError, KafkaError, TopicAlreadyExists
from barnabas_collector.positions import POSITIONS_TOPIC

_log = logging.getLogger(__name__)

_POLICY = "cleanup.policy"


async def prepare_positions_topic(admin: Admin) -> None:
    """Create it if there is none. Raises `ConfigError` if its positions would be deleted by age or
    size: then every line would be sent again."""
    try:
        new = NewTopic(POSITIONS_TOPIC, 1, configs={_POLICY: "compact"})
        await admin.create_topics([new])
        return
    except TopicAlreadyExists:
        pass
    try:
        entries = await admin.describe_configs(ConfigResource(TOPIC, POSITIONS_TOPIC), [_POLICY])
    except KafkaError as error:  # perhaps only reading and writing is allowed
        _log.warning("cannot check that %s=compact for %s: %s", _POLICY, POSITIONS_TOPIC, error)
        return
    for entry in entries:
        if entry.name == _POLICY and entry.value != "compact":
            raise ConfigError(
                f"{POSITIONS_TOPIC} has {_POLICY}={entry.value}, so the positions in it are"
                " deleted, and then every line is sent again; change it: barnabas configs alter"
                f" --topic {POSITIONS_TOPIC} --add {_POLICY}=compact"
            )
