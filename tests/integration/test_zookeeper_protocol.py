"""ZS-1, ZS-2: logins, nodes with a time to live, and four-letter words of our ZooKeeper server."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError
from kazoo.security import make_acl, make_digest_acl, make_digest_acl_credential

from barnabas.zookeeper.codes import Code, Flag, Op
from barnabas.zookeeper.jute import Acl, buffer_bytes
from tests.kit.clients.zookeeper_wire import (
    WireSession,
    create_body,
    create_ttl_body,
    watch_body,
)
from tests.kit.processes.broker_process import COMMAND
from tests.kit.processes.own_zookeeper_process import OwnZooKeeperProcess
from tests.kit.processes.zookeeper_process import running
from tests.kit.waiting import wait_until

OPEN = [Acl(31, "world", "anyone")]
HOUR_MS = 3_600_000
PATIENCE_S = 10.0
SHORT_MS = 300
CHECKS = "extendedTypesEnabled=true\nznode.container.checkIntervalMs=100"
JAAS = """
Server {
    org.apache.zookeeper.server.auth.DigestLoginModule required user_admin="a-secret";
};
"""


@contextmanager
def server_with(directory: Path, config: str) -> Iterator[OwnZooKeeperProcess]:
    with running(OwnZooKeeperProcess(directory, config=config)) as server:
        yield server


def with_ttl(session: WireSession, path: str, ttl_ms: int) -> object:
    body = create_ttl_body(path, b"", OPEN, Flag.PERSISTENT_WITH_TTL, ttl_ms)
    return session.ask(Op.CREATE_TTL, body)[-1][1]  # type: ignore[index]


def exists(session: WireSession, path: str) -> bool:
    return session.ask(Op.EXISTS, watch_body(path, False))[-1][1] == Code.OK  # type: ignore[index]


def test_zs_1_nodes_live_until_their_time_has_passed_and_they_are_empty(tmp_path: Path) -> None:
    with server_with(tmp_path, CHECKS) as server:
        session = WireSession(server.port, {}, "one")
        assert with_ttl(session, "/short", SHORT_MS) == Code.OK
        assert with_ttl(session, "/parent", SHORT_MS) == Code.OK
        session.ask(Op.CREATE, create_body("/parent/x", b"", OPEN, 0))
        assert with_ttl(session, "/long", HOUR_MS) == Code.OK
        wait_until(lambda: not exists(session, "/short"))
        # It is deleted later than it could have been, so the others are kept for a reason.
        assert exists(session, "/parent") and exists(session, "/long")
        session.close()


def test_zs_2_the_time_to_live_is_kept_through_a_kill(tmp_path: Path) -> None:
    with server_with(tmp_path, "extendedTypesEnabled=true") as server:
        session = WireSession(server.port, {}, "one")
        with_ttl(session, "/short", SHORT_MS)
        with_ttl(session, "/long", HOUR_MS)
        server.kill()
    with server_with(tmp_path, CHECKS) as server:
        session = WireSession(server.port, {}, "one")
        wait_until(lambda: not exists(session, "/short"))
        assert exists(session, "/long")


def test_zs_1_nodes_with_a_time_to_live_have_to_be_enabled(tmp_path: Path) -> None:
    with server_with(tmp_path, "") as server:
        assert with_ttl(WireSession(server.port, {}, "one"), "/a", HOUR_MS) == Code.UNIMPLEMENTED


def test_zs_1_a_client_that_must_log_in_gets_no_other_response(tmp_path: Path) -> None:
    jaas = tmp_path / "jaas.conf"
    jaas.write_text(JAAS)
    config = f"java.security.auth.login.config={jaas}\nsessionRequireClientSASLAuth=true"
    with server_with(tmp_path, config) as server:
        session = WireSession(server.port, {}, "one")
        code = Code.SESSION_CLOSED_REQUIRES_LOGIN
        assert session.ask(Op.GET_DATA, watch_body("/", False)) == [(Op.GET_DATA, code, ())]
        with pytest.raises((AssertionError, ConnectionError)):
            session.ask(Op.GET_DATA, watch_body("/", False))
        session = WireSession(server.port, {}, "two")
        ((_, code, (challenge,)),) = session.ask(Op.SASL, buffer_bytes(b""))  # type: ignore[misc]
        assert code == Code.OK and challenge.startswith(b'realm="zk-sasl-md5"')
        assert "a-secret" not in server.log.read_text()


def test_zs_1_a_file_without_users_stops_the_start(tmp_path: Path) -> None:
    jaas = tmp_path / "jaas.conf"
    jaas.write_text(JAAS.replace("Server", "Other"))
    words = ["zookeeper", "start", "--port", "0", "--data-dir", str(tmp_path / "data")]
    done = subprocess.run(
        [str(COMMAND), *words, "--jaas-config", str(jaas)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    reason = "java.security.auth.login.config: the file has no section Server"
    assert (done.returncode, done.stderr) == (1, f"barnabas zookeeper start: {reason}\n")


def test_zs_1_a_super_user_may_do_everything(tmp_path: Path) -> None:
    digest = make_digest_acl_credential("super", "s-secret")
    config = f"DigestAuthenticationProvider.superDigest={digest}"
    with server_with(tmp_path, config) as server:
        client = KazooClient(server.connect)
        client.start(timeout=PATIENCE_S)
        try:
            client.create("/other", acl=[make_digest_acl("other", "secret", all=True)])
            client.create("/sasl", acl=[make_acl("sasl", "other", all=True)])
            for path in ("/other", "/sasl"):
                with pytest.raises(NoAuthError):
                    client.get(path)
            client.add_auth("digest", "super:s-secret")
            for path in ("/other", "/sasl"):
                assert client.get(path)[0] == b""
        finally:
            client.stop()
            client.close()


def test_zs_1_the_words_of_the_list_are_answered(tmp_path: Path) -> None:
    config = "4lw.commands.whitelist=stat, cons, dump, envi, wchs, wchc, wchp, isro, dirs"
    with server_with(tmp_path, config) as server:
        client = KazooClient(server.connect)
        client.start(timeout=PATIENCE_S)
        try:
            client.create("/e", ephemeral=True)
            client.get("/e", watch=print)
            own = f"0x{client.client_id[0]:x}"
            assert "[1](queued=0,recved=" in server.word(b"stat")
            assert "\nMode: standalone\n" in server.word(b"stat")
            assert re.search(rf",sid={own},lop=GETD,est=\d+,to=10000,lcxid=", server.word(b"cons"))
            dump = server.word(b"dump")
            assert "1 expire at " in dump
            assert f"Sessions with Ephemerals (1):\n{own}:\n\t/e\n" in dump
            assert client.server_version() == (3, 8, 0)
            assert server.word(b"wchs") == "1 connections watching 1 paths\nTotal watches:1\n"
            assert server.word(b"wchc") == f"{own}\n\t/e\n\n"
            assert server.word(b"wchp") == f"/e\n\t{own}\n\n"
            assert server.word(b"isro") == "rw"
            assert server.word(b"dirs").startswith("datadir_size: ")
            assert server.word(b"ruok").startswith("ruok is not executed")
        finally:
            client.stop()
            client.close()
