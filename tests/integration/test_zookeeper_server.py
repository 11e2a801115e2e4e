"""ZS-1, ZS-2: our own ZooKeeper server, with kazoo as its client and `kill -9` as its end."""

from __future__ import annotations

import resource
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from struct import pack

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import (
    BadVersionError,
    KazooException,
    NoAuthError,
    NoChildrenForEphemeralsError,
    NoNodeError,
    RolledBackError,
    RuntimeInconsistency,
)
from kazoo.protocol.states import WatchedEvent
from kazoo.security import make_digest_acl

from tests.kit.processes.full_disks import small_filesystem
from tests.kit.processes.own_zookeeper_process import OwnZooKeeperProcess, own_zookeeper
from tests.kit.processes.zookeeper_process import kazoo_clients, running
from tests.kit.waiting import wait_until

SESSION_S = 10.0
KILLS = 10
FULL_BYTES = 50_000
PATIENCE_S = 60.0


@pytest.fixture
def server(tmp_path: Path) -> Iterator[OwnZooKeeperProcess]:
    with own_zookeeper(tmp_path) as server:
        yield server


@pytest.fixture
def clients(server: OwnZooKeeperProcess) -> Iterator[list[KazooClient]]:
    """Two clients that are connected."""
    with kazoo_clients([server.connect] * 2, SESSION_S) as clients:
        yield clients


def test_zs_1_a_tree_is_written_and_read(clients: list[KazooClient]) -> None:
    one, other = clients
    one.create("/a", b"first")
    assert one.set("/a", b"second", version=0).version == 1
    assert other.get("/a")[0] == b"second"
    with pytest.raises(BadVersionError):
        other.set("/a", b"third", version=0)
    assert one.create("/a/s-", sequence=True) == "/a/s-0000000000"
    assert other.create("/a/s-", sequence=True) == "/a/s-0000000001"
    other.delete("/a/s-0000000000")
    assert one.create("/a/s-", sequence=True) == "/a/s-0000000002"
    stat = one.exists("/a")
    assert (stat.numChildren, stat.cversion, stat.dataLength) == (2, 4, 6)
    assert sorted(other.get_children("/a")) == ["s-0000000001", "s-0000000002"]
    with pytest.raises(NoNodeError):
        one.get("/b")


def test_zs_1_a_multi_is_all_or_nothing(clients: list[KazooClient]) -> None:
    one, other = clients
    failing = one.transaction()
    failing.create("/a", b"")
    failing.check("/a", 1)
    failing.delete("/a")
    kinds = [type(each) for each in failing.commit()]
    assert kinds == [RolledBackError, BadVersionError, RuntimeInconsistency]
    assert other.exists("/a") is None
    passing = one.transaction()
    passing.create("/a", b"")
    passing.set_data("/a", b"data", 0)
    passing.create("/a/b", b"", ephemeral=True)
    created, stat, below = passing.commit()
    assert (created, stat.version, below) == ("/a", 1, "/a/b")
    with pytest.raises(NoChildrenForEphemeralsError):
        other.create("/a/b/c")


def test_zs_1_a_watch_fires_before_a_read_shows_the_change(clients: list[KazooClient]) -> None:
    one, other = clients
    one.create("/a", b"0")
    events: list[WatchedEvent] = []
    seen: list[int] = []
    for number in range(1, 50):
        other.get("/a", watch=events.append)
        one.set("/a", b"%d" % number)
        while other.get("/a")[0] != b"%d" % number:
            pass
        # Callbacks run in a thread of their own, in the order of their arrival.
        passed = threading.Event()
        other.handler.spawn(passed.set)
        wait_until(lambda number=number: len(events) == number)
        seen.append(len(events))
    assert seen == list(range(1, 50))
    assert {(each.type, each.path) for each in events} == {("CHANGED", "/a")}


def test_zs_1_an_acl_keeps_others_out(clients: list[KazooClient]) -> None:
    one, other = clients
    one.add_auth("digest", "user:secret")
    one.create("/a", b"mine", acl=[make_digest_acl("user", "secret", all=True)])
    with pytest.raises(NoAuthError):
        other.get("/a")
    other.add_auth("digest", "user:secret")
    assert other.get("/a")[0] == b"mine"


def test_zs_1_the_four_letter_words_are_answered(server: OwnZooKeeperProcess) -> None:
    assert server.word(b"ruok") == "imok"
    assert "\nMode: standalone\n" in server.word(b"srvr")
    assert "\nzk_znode_count\t5\n" in server.word(b"mntr")
    assert f"clientPort={server.port}\n" in server.word(b"conf")
    assert server.word(b"dump").startswith("dump is not executed")


def test_zs_1_bytes_that_are_no_request_close_the_connection(server: OwnZooKeeperProcess) -> None:
    assert server.word(b"GET / HTTP/1.1\r\n\r\n") == ""
    assert server.word(b"\0\0\0\x02ab") == ""
    assert "a record ends in the middle of a number" in server.log.read_text()
    assert server.word(b"ruok") == "imok"


def test_zs_2_an_expired_session_leaves_no_ephemeral(
    server: OwnZooKeeperProcess, clients: list[KazooClient]
) -> None:
    watched: list[WatchedEvent] = []
    clients[0].exists("/a", watch=watched.append)
    acl = pack(">i", 1) + pack(">i", 31) + text("world") + text("anyone")
    with socket.create_connection(("127.0.0.1", server.port), timeout=SESSION_S) as connection:
        connection.sendall(framed(pack(">iqiq", 0, 0, 500, 0) + pack(">i", 16) + bytes(16)))
        connection.sendall(framed(pack(">ii", 1, 1) + text("/a") + text("") + acl + pack(">i", 1)))
        wait_until(lambda: watched)
        clients[0].exists("/a", watch=watched.append)
    # The connection is closed, but not the session.
    wait_until(lambda: len(watched) == 2)
    assert [each.type for each in watched] == ["CREATED", "DELETED"]
    assert clients[0].exists("/a") is None


def framed(body: bytes) -> bytes:
    return pack(">i", len(body)) + body


def text(value: str) -> bytes:
    return framed(value.encode())


def test_zs_2_no_session_is_lost_and_no_ephemeral_is_left_by_ten_kills(
    server: OwnZooKeeperProcess, clients: list[KazooClient]
) -> None:
    """Each acknowledged write is still there, and each session has its ephemeral node."""
    states: list[str] = []
    ids = [each.client_id for each in clients]
    for place, client in enumerate(clients):
        client.add_listener(states.append)
        client.create(f"/of-{place}", ephemeral=True)
    clients[0].create("/counter", b"0")
    acknowledged = 0
    for kill in range(KILLS):
        brief = KazooClient(server.connect, timeout=SESSION_S)
        brief.start(timeout=SESSION_S)
        brief.create("/brief", ephemeral=True)
        brief.stop()
        brief.close()
        pending = []
        for _ in range(200):
            acknowledged += 1
            pending.append(clients[0].set_async("/counter", b"%d" % acknowledged))
        pending[20 * kill].wait(SESSION_S)
        server.kill()
        done = [each for each in pending if _succeeds(each)]
        least = acknowledged - len(pending) + len(done)
        server.start()
        acknowledged = int(_retried(clients[0], "/counter"))
        assert acknowledged >= least
        assert clients[1].retry(clients[1].exists, "/brief") is None
    assert [each.client_id for each in clients] == ids
    assert "LOST" not in states
    assert sorted(clients[0].get_children("/")) == ["counter", "of-0", "of-1", "zookeeper"]
    clients[1].stop()
    wait_until(lambda: clients[0].exists("/of-1") is None)


def _succeeds(pending: object) -> bool:
    try:
        pending.get(timeout=SESSION_S)  # type: ignore[attr-defined]
    except KazooException:
        return False
    return True


def _retried(client: KazooClient, path: str) -> bytes:
    data: bytes = client.retry(client.get, path)[0]
    return data


def test_zs_2_a_disk_without_space_ends_the_server_until_there_is_room(tmp_path: Path) -> None:
    """It acknowledges nothing that does not fit, and says what is to be done."""
    with small_filesystem(tmp_path) as disk:
        data = disk.directory
        process = OwnZooKeeperProcess(tmp_path, config=f"dataDir={data}")
        with running(process) as server:
            client = KazooClient(server.connect, timeout=SESSION_S)
            client.start(timeout=SESSION_S)
            created = [client.create("/n-", b"x" * 1000, sequence=True) for _ in range(10)]
            disk.fill_up()
            with pytest.raises(KazooException):
                while True:
                    created.append(client.create("/n-", b"x" * 1000, sequence=True))
            assert server.process is not None and server.process.wait(PATIENCE_S) == 1
            said = server.log.read_text()
            assert f"cannot write to the data directory {data}: [Errno 28]" in said
            assert "make room on its disk" in said
            client.stop()
            client.close()
            server.kill()
            disk.make_room()
            server.start()
            client = KazooClient(server.connect, timeout=SESSION_S)
            client.start(timeout=SESSION_S)
            assert {path[1:] for path in created} <= set(client.get_children("/"))
            assert client.create("/more", b"x" * 10_000) == "/more"
            client.stop()
            client.close()


def test_zs_2_a_full_disk_ends_the_server_and_loses_no_answer(tmp_path: Path) -> None:
    with own_zookeeper(tmp_path) as server:
        client = KazooClient(server.connect, timeout=SESSION_S)
        client.start(timeout=SESSION_S)
        process = server.process
        assert process is not None
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (FULL_BYTES, FULL_BYTES))
        created = []
        with pytest.raises(KazooException):
            while True:
                created.append(client.create("/n-", b"x" * 1000, sequence=True))
        assert process.wait(PATIENCE_S) == 1
        said = server.log.read_text()
        assert "File too large" in said and "start the server again" in said
        client.stop()
        client.close()
        server.kill()
        server.start()
        client = KazooClient(server.connect, timeout=SESSION_S)
        client.start(timeout=SESSION_S)
        assert {path[1:] for path in created} <= set(client.get_children("/"))
        assert len(created) > 10
        client.stop()
        client.close()
