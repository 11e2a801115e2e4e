"""sd_notify, with a real datagram socket in systemd's place."""

from __future__ import annotations

import logging
import os
import socket
from pathlib import Path

import pytest

from barnabas.broker.runtime.sd_notify import READY, STOPPING, notify


def bound(address: str) -> socket.socket:
    receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    receiver.settimeout(60)
    receiver.bind(address)
    return receiver


def test_states_arrive_at_a_path(tmp_path: Path) -> None:
    path = str(tmp_path / "notify")
    with bound(path) as receiver:
        notify(READY, {"NOTIFY_SOCKET": path})
        notify(STOPPING, {"NOTIFY_SOCKET": path})
        assert [receiver.recv(100) for _ in range(2)] == [b"READY=1", b"STOPPING=1"]


def test_states_arrive_at_an_abstract_address(tmp_path: Path) -> None:
    """systemd in a container names one; it has no file."""
    name = f"barnabas-{os.getpid()}-{tmp_path.name}"
    with bound(f"\0{name}") as receiver:
        notify(READY, {"NOTIFY_SOCKET": f"@{name}"})
        assert receiver.recv(100) == b"READY=1"


@pytest.mark.parametrize("address", ["/nowhere/notify", "vsock:2:1234", "/" + "long" * 100])
def test_a_socket_that_is_not_there_is_a_warning(
    address: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The broker serves all the same; the service manager's own timeout shows the rest."""
    with caplog.at_level(logging.WARNING):
        notify(READY, {"NOTIFY_SOCKET": address})
    assert [record.getMessage().split(": ")[0] for record in caplog.records] == [
        f"NOTIFY_SOCKET={address}".split(": ")[0]
    ]


def test_without_the_variable_nothing_is_sent(caplog: pytest.LogCaptureFixture) -> None:
    notify(READY, {})
    notify(READY, {"NOTIFY_SOCKET": ""})
    assert caplog.records == []


def test_a_manager_that_reads_nothing_delays_a_broker_by_a_second_at_most(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = str(tmp_path / "notify")
    with bound(path), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as filling:
        filling.setblocking(False)
        filling.connect(path)
        with pytest.raises(BlockingIOError):
            for _ in range(100_000):
                filling.send(b"full")
        notify(READY, {"NOTIFY_SOCKET": path})
    assert "READY=1 not sent: timed out" in caplog.text
