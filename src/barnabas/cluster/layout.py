"""Defines the layout of the metadata tree: the paths and payloads of Kafka 3.9's znodes.

    /cluster/id                                    {"version":"1","id":"<22 characters>"}
    /controller              ephemeral             {"version":2,"brokerid":0,"timestamp":...}
    /controller_epoch        its data version fences deposed controllers          7
    /brokers/ids/<id>        ephemeral, czxid = broker epoch      addresses, rack
    /brokers/topics/<t>                            topic id, replicas by partition
    /brokers/topics/<t>/partitions/<p>/state       leader, ISR; data version = partition epoch
    /config/topics/<t>                             {"version":1,"config":{"retention.ms":"1000"}}
    /admin/delete_topics/<t>                       a request; the controller removes it last
    /isr_change_notification/isr_change_<n>        partitions whose ISR a leader has written
    /latest_producer_id_block                      the last allocated block of producer ids

Payloads are compact JSON with the keys in the same order as in Kafka 3.9. Readers accept any order
and ignore unknown keys. A malformed payload raises CorruptData with the path of the node.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeVar

from barnabas.cluster.image import BrokerImage, Endpoint, PartitionImage
from barnabas.errors import CorruptData
from barnabas.named_tuple import NamedTuple
from barnabas.types import NO_TOPIC_ID, TopicPartition, uuid_from_text, uuid_text

GROUP_TOPIC, TRANSACTION_TOPIC = "__consumer_offsets", "__transaction_state"
INTERNAL_TOPICS = frozenset({GROUP_TOPIC, TRANSACTION_TOPIC})

CLUSTER_ID = "/cluster/id"
CONTROLLER = "/controller"
CONTROLLER_EPOCH = "/controller_epoch"
BROKER_IDS = "/brokers/ids"
TOPICS = "/brokers/topics"
TOPIC_CONFIGS = "/config/topics"
DELETE_TOPICS = "/admin/delete_topics"
ISR_CHANGES = "/isr_change_notification"
PRODUCER_ID_BLOCK = "/latest_producer_id_block"
FEATURE = "/feature"

BASE_PATHS = (
    "/consumers",
    "/brokers",
    BROKER_IDS,
    TOPICS,
    "/config",
    "/config/changes",
    "/admin",
    DELETE_TOPICS,
    "/brokers/seqid",
    ISR_CHANGES,
    PRODUCER_ID_BLOCK,
    "/log_dir_event_notification",
    TOPIC_CONFIGS,
    "/config/clients",
    "/config/users",
    "/config/brokers",
    "/config/ips",
    "/cluster",
)
"""Nodes without data that every broker creates at startup if they are missing, parents first."""

FEATURE_NODE = b'{"features":{},"version":2,"status":1}'
"""The finalized features. A 3.9 controller in ZooKeeper mode has none."""

T = TypeVar("T")

_SUBPROTOCOLS = "listener_security_protocol_map"
_MAY_HAVE_LOST = "suffix_may_be_lost"
"""A key that only Barnabas uses. Kafka ignores it, as it does any unknown key."""


Replicas = Mapping[int, Sequence[int]]
"""Maps each partition number to the ids of the brokers that have a replica."""

_NONE_MOVE: Replicas = MappingProxyType({})


class TopicNode(NamedTuple):
    """The node `/brokers/topics/<t>`. The id is None if the topic was created before Kafka 2.8.

    `adding` and `removing` contain a partition only while it is being reassigned (KIP-455).
    """

    topic_id: bytes | None
    replicas: Replicas
    adding: Replicas = _NONE_MOVE
    removing: Replicas = _NONE_MOVE


class StateNode(NamedTuple):
    """The node `/brokers/topics/<t>/partitions/<p>/state`."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int


class ProducerIdBlock(NamedTuple):
    """The node `/latest_producer_id_block`.

    The block contains the ids from `first` to `last`, inclusive.
    """

    broker_id: int
    first: int
    last: int


def broker_path(broker_id: int) -> str:
    return f"{BROKER_IDS}/{broker_id}"


def topic_path(topic: str) -> str:
    return f"{TOPICS}/{topic}"


def partitions_path(topic: str) -> str:
    return f"{TOPICS}/{topic}/partitions"


def partition_path(topic: str, partition: int) -> str:
    return f"{TOPICS}/{topic}/partitions/{partition}"


def state_path(topic: str, partition: int) -> str:
    return f"{TOPICS}/{topic}/partitions/{partition}/state"


def partition_of_state(path: str) -> TopicPartition | None:
    """Return the partition if this is the path of a state node, otherwise None."""
    parts = path.removeprefix(f"{TOPICS}/").split("/")
    if not path.startswith(f"{TOPICS}/") or len(parts) != 4:
        return None
    topic, partitions, number, state = parts
    if (partitions, state) != ("partitions", "state") or not number.isdecimal():
        return None
    return TopicPartition(topic, int(number))


def topic_config_path(topic: str) -> str:
    return f"{TOPIC_CONFIGS}/{topic}"


def delete_topic_path(topic: str) -> str:
    return f"{DELETE_TOPICS}/{topic}"


def encode_cluster_id(cluster_id: str) -> bytes:
    return _encode({"version": "1", "id": cluster_id})


def decode_cluster_id(data: bytes | None) -> str:
    return _decode(CLUSTER_ID, data, lambda node: str(node["id"]))


def encode_controller(broker_id: int, timestamp_ms: int) -> bytes:
    return _encode(
        {
            "version": 2,
            "brokerid": broker_id,
            "timestamp": str(timestamp_ms),
            "kraftControllerEpoch": -1,
        }
    )


def decode_controller(data: bytes | None) -> int:
    """Return the broker id of the controller."""
    return _decode(CONTROLLER, data, lambda node: int(node["brokerid"]))


def encode_epoch(epoch: int) -> bytes:
    return b"%d" % epoch


def decode_epoch(data: bytes | None) -> int:
    try:
        return int(data or b"")
    except ValueError:
        raise CorruptData(f"{CONTROLLER_EPOCH} holds {data!r}, not a number") from None


def encode_broker(broker: BrokerImage, timestamp_ms: int) -> bytes:
    """Encode a broker's registration in version 5. Old readers use only `host` and `port`."""
    # As in Kafka, these are taken from a plaintext endpoint, because the clients that read host and
    # port, such as the 0.8 consumers, do not support any other protocol.
    plain = next((e for e in broker.endpoints if e.security_protocol == "PLAINTEXT"), None)
    node: dict[str, Any] = {
        "features": {},
        _SUBPROTOCOLS: {e.listener: e.security_protocol for e in broker.endpoints},
        "endpoints": [f"{e.listener}://{_bracket(e.host)}:{e.port}" for e in broker.endpoints],
    }
    if broker.rack is not None:
        node["rack"] = broker.rack
    node["jmx_port"] = -1
    node["port"] = plain.port if plain else -1
    node["host"] = plain.host if plain else None
    node["version"] = 5
    node["timestamp"] = str(timestamp_ms)
    if broker.may_have_lost:
        node[_MAY_HAVE_LOST] = True
    return _encode(node)


def decode_broker(broker_id: int, data: bytes | None, epoch: int) -> BrokerImage:
    """Decode a broker's registration in versions 1 to 5. `epoch` is the czxid of the node."""

    def read(node: Mapping[str, Any]) -> BrokerImage:
        protocols = node.get(_SUBPROTOCOLS, {})
        # In version 1, which was written by Kafka 0.8, there is only a host and a port.
        texts = node.get("endpoints") or [f"PLAINTEXT://{node['host']}:{node['port']}"]
        endpoints = tuple(_endpoint(text, protocols) for text in texts)
        may_have_lost = node.get(_MAY_HAVE_LOST) is True
        return BrokerImage(broker_id, endpoints, node.get("rack"), epoch, may_have_lost)

    return _decode(broker_path(broker_id), data, read)


def encode_topic(topic_id: bytes, replicas: Replicas) -> bytes:
    """Encode the node of a topic whose partitions are not being reassigned."""
    return encode_topic_node(TopicNode(topic_id, replicas))


def encode_topic_node(node: TopicNode) -> bytes:
    """Encode the node of a topic in version 3, which contains the topic id."""
    assert node.topic_id is not None
    assert node.topic_id != NO_TOPIC_ID
    return _encode(
        {
            "partitions": _by_number(node.replicas),
            "topic_id": uuid_text(node.topic_id),
            "adding_replicas": _by_number(node.adding),
            "removing_replicas": _by_number(node.removing),
            "version": 3,
        }
    )


def _by_number(replicas: Replicas) -> dict[str, list[int]]:
    return {str(partition): list(ids) for partition, ids in replicas.items()}


def decode_topic(topic: str, data: bytes | None) -> TopicNode:
    """Decode the node of a topic in version 1, 2 or 3."""

    def read(node: Mapping[str, Any]) -> TopicNode:
        # A topic from before Kafka 2.8 gets its id from the first controller that supports topic
        # ids (KIP-516).
        text = node.get("topic_id")
        return TopicNode(
            uuid_from_text(text) if text else None,
            _from_json(node["partitions"]),
            _from_json(node.get("adding_replicas", {})),
            _from_json(node.get("removing_replicas", {})),
        )

    return _decode(topic_path(topic), data, read)


def _from_json(replicas: Mapping[str, Sequence[int]]) -> Replicas:
    return dict(sorted((int(number), tuple(map(int, ids))) for number, ids in replicas.items()))


def state_of(partition: PartitionImage) -> StateNode:
    """Return the state of a partition in the form in which its node stores it."""
    return StateNode(
        partition.leader, partition.leader_epoch, partition.isr, partition.controller_epoch
    )


def encode_state(state: StateNode) -> bytes:
    return _encode(
        {
            "controller_epoch": state.controller_epoch,
            "leader": state.leader,
            "version": 1,
            "leader_epoch": state.leader_epoch,
            "isr": list(state.isr),
        }
    )


def decode_state(topic: str, partition: int, data: bytes | None) -> StateNode:
    def read(node: Mapping[str, Any]) -> StateNode:
        return StateNode(
            int(node["leader"]),
            int(node["leader_epoch"]),
            tuple(map(int, node["isr"])),
            int(node["controller_epoch"]),
        )

    return _decode(state_path(topic, partition), data, read)


def encode_isr_change(names: Iterable[TopicPartition]) -> bytes:
    """Encode the notification that leaders write if inter.broker.protocol.version is below 2.7."""
    partitions = [{"topic": topic, "partition": number} for topic, number in names]
    return _encode({"version": 1, "partitions": partitions})


def decode_isr_change(path: str, data: bytes | None) -> list[TopicPartition]:
    return _decode(
        path,
        data,
        lambda node: [
            TopicPartition(str(each["topic"]), int(each["partition"]))
            for each in node["partitions"]
        ],
    )


def encode_config(config: Mapping[str, str]) -> bytes:
    return _encode({"version": 1, "config": dict(config)})


def decode_config(path: str, data: bytes | None) -> dict[str, str]:
    """Decode the configs in a config node of any kind. A node without data has no configs."""
    if not data:
        return {}
    return _decode(path, data, lambda node: {str(k): str(v) for k, v in node["config"].items()})


def encode_producer_id_block(block: ProducerIdBlock) -> bytes:
    return _encode(
        {
            "version": 1,
            "broker": block.broker_id,
            "block_start": str(block.first),
            "block_end": str(block.last),
        }
    )


def decode_producer_id_block(data: bytes | None) -> ProducerIdBlock | None:
    """Decode the last block that was allocated. The result is None if there was none."""
    if not data:
        return None
    return _decode(
        PRODUCER_ID_BLOCK,
        data,
        lambda node: ProducerIdBlock(
            int(node["broker"]), int(node["block_start"]), int(node["block_end"])
        ),
    )


def _endpoint(text: str, protocols: Mapping[str, str]) -> Endpoint:
    listener, _, address = text.partition("://")
    host, _, port = address.rpartition(":")
    protocol = str(protocols.get(listener, listener))  # before version 4, the name is the protocol
    return Endpoint(listener, host.strip("[]"), int(port), protocol)


def _bracket(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _encode(node: Mapping[str, Any]) -> bytes:
    return json.dumps(node, separators=(",", ":"), ensure_ascii=False).encode()


def _decode(path: str, data: bytes | None, read: Callable[[Mapping[str, Any]], T]) -> T:
    try:
        return read(json.loads(data or b""))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptData(f"{path} cannot be read ({error!r}): {data!r}") from None
