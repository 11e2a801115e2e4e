"""Config nodes are Kafka's, by what a real one wrote (ZK-1)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from barnabas.cluster import config_changes
from barnabas.errors import CorruptData


def test_paths() -> None:
    assert config_changes.config_path(config_changes.broker_entity(3)) == "/config/brokers/3"
    assert (
        config_changes.config_path(config_changes.broker_entity(None))
        == "/config/brokers/<default>"
    )
    topic = config_changes.entity(config_changes.TOPICS, "t")
    assert config_changes.config_path(topic) == "/config/topics/t"


def test_a_change_is_written_as_kafka_writes_it() -> None:
    assert config_changes.encode_change("topics/r3") == b'{"version":2,"entity_path":"topics/r3"}'


def test_old_changes_are_read() -> None:
    old = b'{"version":1,"entity_type":"topics","entity_name":"t"}'
    assert config_changes.decode_change("/p", old) == "topics/t"


@pytest.mark.parametrize("data", [None, b"", b"{", b"[]", b"7", b"{}", b'{"version":2}'])
def test_what_is_no_change_names_its_path(data: bytes | None) -> None:
    """UX-4"""
    with pytest.raises(CorruptData, match="/config/changes/x"):
        config_changes.decode_change("/config/changes/x", data)


@pytest.mark.foreign
def test_every_recorded_change_reads_and_writes_to_its_bytes(shared: Path) -> None:
    """ZK-1"""
    directory = shared / "fixtures" / "kafka-3.9" / "zookeeper"
    changes = 0
    for file in sorted(directory.glob("*.json")):
        for path, node in json.loads(file.read_text()).items():
            if path.startswith(config_changes.CHANGE_PREFIX):
                data = node["data"].encode()
                entity = config_changes.decode_change(path, data)
                assert config_changes.encode_change(entity) == data
                changes += 1
    print(f"{changes} config changes")
    assert changes >= 10
