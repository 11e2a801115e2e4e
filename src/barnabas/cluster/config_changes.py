"""Encodes and decodes the nodes that contain broker configs or notify brokers of a config change.

    /config/brokers/<id>                      {"version":1,"config":{"message.max.bytes":"1000"}}
    /config/brokers/<default>                 the same, for all brokers
    /config/changes/config_change_0000000007  {"version":2,"entity_path":"topics/t"}

A change node only asks the brokers to read that entity's config again. Before Kafka 0.9 (version
1), the entity was named by two fields, `entity_type` and `entity_name`.
"""

from __future__ import annotations

import json

from barnabas.errors import CorruptData

CHANGES = "/config/changes"
CHANGE_PREFIX = f"{CHANGES}/config_change_"
DEFAULT = "<default>"
TOPICS, BROKERS, USERS = "topics", "brokers", "users"


def entity(kind: str, name: str) -> str:
    return f"{kind}/{name}"


def broker_entity(broker_id: int | None) -> str:
    """Return the entity for one broker, or for all brokers."""
    return entity(BROKERS, DEFAULT if broker_id is None else str(broker_id))


def config_path(entity_path: str) -> str:
    """Return the path of the node that contains the entity's config."""
    return f"/config/{entity_path}"


def encode_change(entity_path: str) -> bytes:
    node = {"version": 2, "entity_path": entity_path}
    return json.dumps(node, separators=(",", ":"), ensure_ascii=False).encode()


def decode_change(path: str, data: bytes | None) -> str:
    """Return the entity whose config has changed.

    If the node is malformed, raises CorruptData with the path.
    """
    try:
        node = json.loads(data or b"")
        if node["version"] == 1:
            return entity(str(node["entity_type"]), str(node["entity_name"]))
        return str(node["entity_path"])
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptData(f"{path} cannot be read ({error!r}): {data!r}") from None
