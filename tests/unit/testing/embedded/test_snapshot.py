"""TK-5: a broker's whole state, saved and restored."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas import Broker, Cluster
from barnabas.client.admin.admin import TOPIC, ConfigResource
from barnabas.errors import ConfigError
from barnabas.testing.embedded.snapshot import Snapshot
from barnabas.types import TopicPartition


def filled(broker: Broker) -> None:
    """A topic with records and a config, a group with an offset, a transaction."""
    topic = broker.topic("t", partitions=2, config={"retention.ms": "-1"})
    topic.send_many([b"a", b"b"], partition=1)
    with broker.admin() as admin:
        admin.alter_group_offsets("g", {TopicPartition("t", 1): 1})
    with broker.producer(transactional_id="x") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("t", b"c", partition=0).result()
        producer.commit_transaction()


def state(broker: Broker) -> object:
    with broker.admin() as admin:
        (retention,) = admin.describe_configs(ConfigResource(TOPIC, "t"), ["retention.ms"])
        (transaction,) = admin.describe_transactions(["x"]).values()
    return (
        broker.topics(),
        broker.topic("t").values(isolation_level="read_committed"),
        broker.group("g").offsets(),
        retention.value,
        (transaction.state, transaction.producer_id, transaction.producer_epoch),
    )


def test_tk_5_each_restore_has_the_whole_state_and_is_its_own() -> None:
    with Broker() as broker:
        filled(broker)
        before, port = state(broker), broker.port
        snapshot = broker.snapshot()
        assert (state(broker), broker.port) == (before, port)
        broker.topic("t").send(b"later")
    with snapshot:
        with Broker(snapshot=snapshot) as one, Broker(snapshot=snapshot.path) as two:
            assert state(one) == state(two) == before
            one.topic("t").send(b"in one")
            one.topic("only-one")
            assert state(two) == before
            one.stop()
            one.start()
            assert "only-one" in one.topics()  # not the snapshot again
        assert snapshot.path.is_dir()
    with pytest.raises(ConfigError, match=r"it was deleted"):
        Broker(snapshot=snapshot).start()


def test_tk_5_a_running_broker_goes_back_to_it(tmp_path: Path) -> None:
    with Broker(tmp_path / "data") as broker:
        filled(broker)
        before, port = state(broker), broker.port
        broker.snapshot(tmp_path / "saved")
        broker.topic("t").delete()
        broker.topic("other")
        (tmp_path / "data.restoring" / "half").mkdir(parents=True)  # what a crash has left
        broker.restore(tmp_path / "saved")
        assert (state(broker), broker.port) == (before, port)
    assert Snapshot(tmp_path / "saved").kind.noun == "broker"
    with Broker(tmp_path / "data") as broker:
        assert state(broker) == before


def test_tk_5_a_stopped_broker_may_be_saved_too(tmp_path: Path) -> None:
    broker = Broker(tmp_path / "data").start()
    broker.topic("t")
    broker.stop()
    with broker.snapshot() as snapshot, Broker(snapshot=snapshot) as other:
        assert other.topics() == ["t"]
    assert not broker.is_running
    broker.close()


def test_tk_5_what_is_no_place_or_no_snapshot_is_refused(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    with Broker(tmp_path / "data") as broker:
        with pytest.raises(ConfigError, match=rf"^path={tmp_path}/full is not empty"):
            broker.snapshot(tmp_path / "full")
        snapshot = broker.snapshot(tmp_path / "saved")
        with pytest.raises(ConfigError, match=rf"there is no snapshot in {tmp_path}/full"):
            broker.restore(tmp_path / "full")
        assert broker.is_running and broker.topics() == []
    with pytest.raises(ConfigError, match=r"is of a broker, but this is a cluster of 2 brokers"):
        Cluster(2, snapshot=snapshot).start()
    with pytest.raises(ConfigError, match=r"^snapshot: data_dir=.*/data has data"):
        Broker(tmp_path / "data", snapshot=snapshot).start()
    (tmp_path / "saved" / "snapshot.json").write_text("[]")
    with pytest.raises(ConfigError, match=r"snapshot\.json cannot be read"):
        Snapshot(tmp_path / "saved")
    several = f"{tmp_path / 'a'},{tmp_path / 'b'}"
    refused = pytest.raises(ConfigError, match=r"^snapshot: the data is in several directories")
    with Broker(config={"log.dirs": several}) as broker, refused:
        broker.snapshot()
