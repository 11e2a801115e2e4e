"""`barnabas server start` as operators meet it: ready line, clean stop, one-line refusals."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
from pathlib import Path

import pytest

from tests.kit import foreign
from tests.kit.clients import confluent_client
from tests.kit.clients.clients import Sent
from tests.kit.processes.broker_process import BrokerProcess, broker_process

pytestmark = pytest.mark.secured


def test_a_clean_stop_leaves_the_marker_and_the_next_start_scans_nothing(tmp_path: Path) -> None:
    """ST-8"""
    marker = tmp_path / "data" / ".kafka_cleanshutdown"
    with broker_process(tmp_path) as broker:
        assert not marker.exists()
        servers = broker.bootstrap_servers
        confluent_client.create_topic(servers, "kept", 1, {})
        sent = [Sent(0, b"key", b"value %d" % number) for number in range(100)]
        confluent_client.produce(servers, "kept", sent, codec="lz4")
        assert broker.stop() == 0
        assert marker.exists()

        broker.start()
        assert not marker.exists()
        seen = confluent_client.consume(servers, "kept", 1, len(sent))
        assert [record.value for record in seen] == [record.value for record in sent]
        assert broker.stop() == 0
    assert "Traceback" not in broker.log.read_text()


def test_the_ready_line_says_where_it_listens(tmp_path: Path) -> None:
    """UX-1"""
    broker = BrokerProcess(tmp_path)
    line = broker.start()
    broker.stop()
    expected = (
        rf"barnabas ready on 127\.0\.0\.1:{broker.port} \(broker 0, {broker.data_dir}, \d+ ms\)\n"
    )
    assert re.fullmatch(expected, line)


def test_a_service_manager_hears_when_it_serves_and_when_it_stops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """UX-8: units ordered after a broker of Type=notify find one that answers."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.settimeout(60)
        manager.bind(str(tmp_path / "notify"))
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        with broker_process(tmp_path) as broker:
            assert manager.recv(100) == b"READY=1"
            socket.create_connection(("127.0.0.1", broker.port)).close()
            assert broker.stop() == 0
            assert manager.recv(100) == b"STOPPING=1"
        manager.setblocking(False)
        with pytest.raises(BlockingIOError):
            manager.recv(100)  # once each


def test_in_json_every_line_of_the_log_is_an_object(tmp_path: Path) -> None:
    """UX-8: also the one that says why a start has failed."""
    broker = BrokerProcess(tmp_path, "broker.id=7")
    broker.words = ("--log-format", "json")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", broker.port))
        taken.listen()
        refusal = json.loads(broker.refuse().splitlines()[-1])
        assert refusal["level"] == "ERROR" and str(broker.port) in refusal["message"]
    broker.start()
    assert broker.stop() == 0
    lines = [json.loads(line) for line in broker.log.read_text().splitlines()]
    assert {line["broker"] for line in lines} == {7}
    assert [line["message"] for line in lines][-1] == "stopped cleanly broker=7"


def test_a_taken_port_is_named(tmp_path: Path) -> None:
    """UX-4"""
    broker = BrokerProcess(tmp_path)
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", broker.port))
        taken.listen()
        says(broker.refuse(), str(broker.port), "in use")


def test_a_directory_of_another_broker_is_left_alone(tmp_path: Path) -> None:
    """UX-4: two brokers on one directory would ruin it."""
    with broker_process(tmp_path) as first:
        servers = first.bootstrap_servers
        confluent_client.create_topic(servers, "kept", 1, {})
        confluent_client.produce(servers, "kept", [Sent(0, b"k", b"v")], codec="none")
        second = BrokerProcess(tmp_path)
        says(second.refuse(), str(first.data_dir), "lock")
        # The first one has not noticed.
        assert len(confluent_client.consume(servers, "kept", 1, 1)) == 1


def test_a_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """UX-4"""
    broker = BrokerProcess(tmp_path)
    broker.data_dir.mkdir(mode=0o500)
    broker.prefix = without_roots_privilege()
    says(broker.refuse(), str(broker.data_dir), "ermission")


def test_a_data_directory_that_is_a_file_is_named(tmp_path: Path) -> None:
    """UX-4"""
    broker = BrokerProcess(tmp_path)
    broker.data_dir.write_text("not a directory")
    says(broker.refuse(), str(broker.data_dir), "directory")


def test_an_unknown_config_is_answered_with_the_nearest_name(tmp_path: Path) -> None:
    """UX-3, UX-4"""
    broker = BrokerProcess(tmp_path, "log.segment.byte=1")
    says(broker.refuse(), "log.segment.byte", "log.segment.bytes")
    broker = BrokerProcess(tmp_path, "log.segment.bytes=many")
    says(broker.refuse(), "log.segment.bytes", "many")


def without_roots_privilege() -> tuple[str, ...]:
    """What makes permissions count for a child process, whichever user runs the tests."""
    if os.geteuid() != 0:
        return ()
    if not shutil.which("setpriv"):
        foreign.missing("no setpriv on the PATH", "apt-get install util-linux, or be another user")
    return ("setpriv", "--bounding-set=-dac_override,-dac_read_search")


def says(stderr: str, *wanted: str) -> None:
    """One clear line that holds these words, and no traceback."""
    lines = [line for line in stderr.splitlines() if re.match(r"barnabas[a-z ]*: ", line)]
    assert len(lines) == 1, stderr
    assert "Traceback" not in stderr
    assert all(word in lines[0] for word in wanted), lines[0]
