"""ZK-1: the payloads are Kafka 3.9's, as a real one wrote them, key order included."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from barnabas.cluster import layout
from barnabas.cluster.image import BrokerImage, Endpoint
from barnabas.cluster.layout import ProducerIdBlock, StateNode, TopicNode
from barnabas.errors import CorruptData
from barnabas.types import TopicPartition, uuid_from_text, uuid_text

_TREES = (
    "single-running.json",
    "single-stopped.json",
    "crash-killed.json",
    "cluster-final-broker3-down.json",
    "cluster-unclean-leader.json",
)
_OLD_TREES = ("single-ibp2.0-running.json", "cluster-ibp2.6.json")


@pytest.fixture(params=(*_TREES, *_OLD_TREES))
def tree(shared: Path, request: pytest.FixtureRequest) -> dict[str, dict[str, Any]]:
    """A metadata tree that Kafka 3.9.1 left in ZooKeeper."""
    return _load(shared, request.param)


def _load(shared: Path, name: str) -> dict[str, dict[str, Any]]:
    text = (shared / "fixtures" / "kafka-3.9" / "zookeeper" / name).read_text()
    loaded: dict[str, dict[str, Any]] = json.loads(text)
    return loaded


def _data(node: dict[str, Any]) -> bytes | None:
    return None if node["data"] is None else node["data"].encode()


def test_partition_states_are_written_as_kafka_writes_them(tree: dict[str, Any]) -> None:
    """ZK-1"""
    states = {path: node for path, node in tree.items() if path.endswith("/state")}
    assert states
    for path, node in states.items():
        _, _, _, topic, _, partition, _ = path.split("/")
        assert layout.state_path(topic, int(partition)) == path
        state = layout.decode_state(topic, int(partition), _data(node))
        if "leader_recovery_state" not in node["data"]:
            assert layout.encode_state(state) == _data(node)


def test_topics_are_read_from_every_version(tree: dict[str, Any]) -> None:
    topics = [path for path in tree if path.count("/") == 3 and path.startswith("/brokers/topics")]
    assert topics
    for path in topics:
        written = json.loads(tree[path]["data"])
        topic = layout.decode_topic(path.rpartition("/")[2], _data(tree[path]))
        assert sorted(topic.replicas) == sorted(map(int, written["partitions"]))
        assert (topic.topic_id is None) == ("topic_id" not in written)


@pytest.mark.parametrize("name", _TREES)
def test_topics_are_written_as_kafka_writes_them(shared: Path, name: str) -> None:
    """ZK-1"""
    tree = _load(shared, name)
    checked = 0
    for path, node in tree.items():
        if path.count("/") != 3 or not path.startswith("/brokers/topics/"):
            continue
        written = json.loads(node["data"])
        if written["adding_replicas"] or written["removing_replicas"]:
            continue
        topic = layout.decode_topic(path.rpartition("/")[2], _data(node))
        assert topic.topic_id is not None
        made = layout.encode_topic(topic.topic_id, topic.replicas)
        assert json.loads(made) == written
        if len(topic.replicas) <= 3:  # of many, the order is that of a hash map
            assert made == _data(node)
            checked += 1
    assert checked


def test_broker_registrations_round_trip(tree: dict[str, Any]) -> None:
    """ZK-1, ZK-2"""
    for path, node in tree.items():
        if not path.startswith("/brokers/ids/"):
            continue
        written = json.loads(node["data"])
        broker = layout.decode_broker(int(path.rpartition("/")[2]), _data(node), node["czxid"])
        assert broker.epoch == node["czxid"]
        assert layout.broker_path(broker.broker_id) == path
        made = json.loads(layout.encode_broker(broker, int(written["timestamp"])))
        if written["version"] == 5:
            assert made == written


def test_the_other_nodes_are_written_as_kafka_writes_them(shared: Path) -> None:
    """ZK-1"""
    tree = _load(shared, "single-running.json")
    controller = json.loads(tree["/controller"]["data"])
    assert layout.decode_controller(_data(tree["/controller"])) == 0
    assert layout.encode_controller(0, int(controller["timestamp"])) == _data(tree["/controller"])
    epoch = layout.decode_epoch(_data(tree["/controller_epoch"]))
    assert layout.encode_epoch(epoch) == _data(tree["/controller_epoch"])
    cluster_id = layout.decode_cluster_id(_data(tree["/cluster/id"]))
    assert layout.encode_cluster_id(cluster_id) == _data(tree["/cluster/id"])
    block = layout.decode_producer_id_block(_data(tree["/latest_producer_id_block"]))
    assert block is not None
    assert layout.encode_producer_id_block(block) == _data(tree["/latest_producer_id_block"])
    assert _data(tree["/feature"]) == layout.FEATURE_NODE
    config = layout.decode_config("/config/topics/segs", _data(tree["/config/topics/segs"]))
    assert config["segment.bytes"] == "8192"
    assert json.loads(layout.encode_config(config)) == json.loads(
        tree["/config/topics/segs"]["data"]
    )


def test_base_paths_are_those_of_a_real_broker(shared: Path) -> None:
    tree = _load(shared, "single-running.json")
    made = set(layout.BASE_PATHS)
    assert made <= set(tree)
    depth_two = {path for path in tree if path.count("/") == 2 and path.startswith("/config/")}
    assert depth_two <= made
    for path in layout.BASE_PATHS:
        parent = path.rpartition("/")[0]
        assert not parent or layout.BASE_PATHS.index(parent) < layout.BASE_PATHS.index(path)


@pytest.mark.parametrize(
    ("uuid", "text"),
    [
        (bytes(range(16)), "AAECAwQFBgcICQoLDA0ODw"),
        (b"\xff" * 16, "_____________________w"),
        (bytes(16), "AAAAAAAAAAAAAAAAAAAAAA"),
    ],
)
def test_ids_are_22_characters(uuid: bytes, text: str) -> None:
    assert uuid_text(uuid) == text
    assert uuid_from_text(text) == uuid


@pytest.mark.parametrize("text", ["", "AAECAwQF", "AAECAwQFBgcICQoLDA0ODw==", "!" * 22])
def test_what_is_no_id(text: str) -> None:
    with pytest.raises(ValueError):
        uuid_from_text(text)


def test_addresses_of_every_kind() -> None:
    endpoints = (Endpoint("IN", "::1", 9092, "PLAINTEXT"), Endpoint("OUT", "h", 9093, "SSL"))
    broker = BrokerImage(4, endpoints, "r1", 17)
    assert layout.decode_broker(4, layout.encode_broker(broker, 0), 17) == broker
    secured = broker._replace(endpoints=endpoints[1:])
    node = json.loads(layout.encode_broker(secured, 0))
    assert (node["host"], node["port"]) == (None, -1)
    old = b'{"version":1,"host":"h","port":9092,"jmx_port":-1}'
    assert layout.decode_broker(4, old, 1).endpoints == (
        Endpoint("PLAINTEXT", "h", 9092, "PLAINTEXT"),
    )


def test_unknown_keys_and_any_order_are_read() -> None:
    text = b'{"isr":[2,1],"new":{},"leader_epoch":3,"leader":2,"controller_epoch":9,"version":1}'
    assert layout.decode_state("t", 0, text) == StateNode(2, 3, (2, 1), 9)
    assert layout.decode_topic("t", b'{"version":1,"partitions":{"1":[2],"0":[1]}}') == TopicNode(
        None, {0: (1,), 1: (2,)}
    )


@pytest.mark.parametrize("data", [None, b"", b"{", b"[]", b"{}", b'{"leader":"x"}', b"\xff"])
def test_what_cannot_be_read_names_its_path(data: bytes | None) -> None:
    with pytest.raises(CorruptData, match="/brokers/topics/t/partitions/0/state"):
        layout.decode_state("t", 0, data)
    with pytest.raises(CorruptData, match="/brokers/topics/t cannot"):
        layout.decode_topic("t", data)
    with pytest.raises(CorruptData, match="/brokers/ids/1"):
        layout.decode_broker(1, data, 0)
    with pytest.raises(CorruptData, match="/controller_epoch"):
        layout.decode_epoch(data)


def test_no_block_of_producer_ids_yet() -> None:
    assert layout.decode_producer_id_block(None) is None
    assert layout.decode_producer_id_block(b"") is None
    block = ProducerIdBlock(3, 1000, 1999)
    assert layout.decode_producer_id_block(layout.encode_producer_id_block(block)) == block


def test_a_reassignment_is_read_and_kept() -> None:
    """KIP-455"""
    data = (
        b'{"partitions":{"0":[2,3,1]},"topic_id":"AAECAwQFBgcICQoLDA0ODw",'
        b'"adding_replicas":{"0":[3]},"removing_replicas":{"0":[1]},"version":3}'
    )
    node = layout.decode_topic("t", data)
    assert (node.adding, node.removing) == ({0: (3,)}, {0: (1,)})
    assert layout.encode_topic_node(node) == data


def test_a_broker_that_may_have_lost_records_says_so() -> None:
    """KIP-966: in a key that Kafka does not know; who has lost nothing writes as Kafka does."""
    endpoints = (Endpoint("PLAINTEXT", "h", 9092, "PLAINTEXT"),)
    broker = BrokerImage(4, endpoints, None, 17, may_have_lost=True)
    data = layout.encode_broker(broker, 1)
    assert data.endswith(b',"timestamp":"1","suffix_may_be_lost":true}')
    assert layout.decode_broker(4, data, 17) == broker
    plain = layout.encode_broker(broker._replace(may_have_lost=False), 1)
    assert b"suffix" not in plain
    assert not layout.decode_broker(4, plain, 17).may_have_lost


def test_a_state_nodes_path_says_whose_it_is() -> None:
    name = TopicPartition("a.b-c", 17)
    assert layout.partition_of_state(layout.state_path(*name)) == name
    for path in (
        "/brokers/topics/t",
        "/brokers/topics/t/partitions/0",
        "/brokers/topics/t/partitions/x/state",
        "/brokers/topics/t/partitions/0/other",
        "/brokers/topics/t/others/0/state",
        "/x/t/partitions/0/state",
        "t/partitions/0/state",
    ):
        assert layout.partition_of_state(path) is None


@pytest.mark.parametrize("data", [None, b"", b"[]", b'{"partitions":[{"topic":"t"}]}'])
def test_an_announcement_of_isrs_that_cannot_be_read(data: bytes | None) -> None:
    with pytest.raises(CorruptData, match="/isr_change_notification/isr_change_1"):
        layout.decode_isr_change("/isr_change_notification/isr_change_1", data)
