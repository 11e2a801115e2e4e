"""The embedded broker: several at once, restarts, failures that say what to do."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest

from barnabas import Broker
from barnabas.errors import ConfigError
from barnabas.protocol.api import FETCH
from tests.raw_client import RawClient, batch
from tests.unit.broker.conftest import create
from tests.unit.broker.handlers.test_fetch import fill, only, values
from tests.unit.broker.handlers.test_fetch import request as fetch_request


def broker_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if "barnabas" in thread.name]


def test_several_at_once_share_nothing() -> None:
    before = broker_threads()
    with Broker() as one, Broker() as two:
        assert one.port != two.port and one.data_dir != two.data_dir
        with RawClient(one.bootstrap_servers) as client:
            create(client, "only-here")
        assert (one.data_dir / "only-here-0").is_dir()
        assert not (two.data_dir / "only-here-0").exists()
    assert broker_threads() == before


def test_a_temporary_directory_goes_with_its_broker() -> None:
    with Broker() as broker:
        directory = broker.data_dir
        assert directory.is_dir()
    assert not directory.exists()


def test_what_was_written_is_there_after_a_restart(tmp_path: Path) -> None:
    """ST-8: a clean stop, and a start that needs no recovery."""
    with Broker(tmp_path) as broker, RawClient(broker.bootstrap_servers) as client:
        create(client, "kept")
        fill(client, "kept", batch(b"a", b"b"))
    assert (tmp_path / ".kafka_cleanshutdown").exists()
    with Broker(tmp_path) as broker, RawClient(broker.bootstrap_servers) as client:
        assert not (tmp_path / ".kafka_cleanshutdown").exists()
        partition = only(client.call(FETCH, 11, fetch_request("kept")))
        assert values(partition) == [b"a", b"b"]
        fill(client, "kept", batch(b"c"))
        assert values(only(client.call(FETCH, 11, fetch_request("kept", 2)))) == [b"c"]


def test_the_same_object_starts_again(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    for _ in range(2):
        broker.start()
        with pytest.raises(ConfigError, match="started already"):
            broker.start()
        broker.stop()
    broker.stop()
    with pytest.raises(ConfigError, match="not running"):
        _ = broker.bootstrap_servers


def test_a_directory_in_use_is_refused(tmp_path: Path) -> None:
    """UX-4: locked by another broker, in this process too; nothing is damaged."""
    with Broker(tmp_path) as broker:
        with pytest.raises((ConfigError, OSError), match=str(tmp_path)):
            Broker(tmp_path).start()
        with RawClient(broker.bootstrap_servers) as client:
            create(client, "still-works")


def test_a_taken_port_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"port {port} is in use"):
            Broker(port=port).start()


def test_a_bad_config_is_refused_with_the_nearest_name() -> None:
    """UX-3"""
    with pytest.raises(ConfigError, match=r"num\.partitions"):
        Broker(config={"num.partition": "3"}).start()


def test_a_client_that_stays_connected_does_not_hold_up_the_stop() -> None:
    with Broker() as broker:
        idle = socket.create_connection(("127.0.0.1", broker.port), 5)
        reader = RawClient(broker.bootstrap_servers)
        create(reader, "waited-for")
        reader.send(FETCH, 11, fetch_request("waited-for", max_wait_ms=60_000))
    assert idle.recv(1) == b""
    idle.close()
    reader.socket.close()


def test_the_directories_may_come_with_the_configuration(tmp_path: Path) -> None:
    both = f"{tmp_path / 'a'},{tmp_path / 'b'}"
    with Broker(config={"log.dirs": both}) as broker:
        assert broker.data_dir == tmp_path / "a"
        assert (tmp_path / "b" / "meta.properties").exists()
    with pytest.raises(ConfigError, match="give one of the two"):
        Broker(tmp_path / "c", config={"log.dirs": both})
