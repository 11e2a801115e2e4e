"""ZS-1: our ZooKeeper server and a real one treat clients that log in, or do not, in the same way.

Logins that succeed are those of kazoo's tests and of the Java client.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from barnabas.zookeeper.codes import Op
from barnabas.zookeeper.jute import buffer_bytes, int_bytes, string_bytes
from tests.kit.clients.zookeeper_wire import WireSession, watch_body
from tests.kit.processes.own_zookeeper_process import OwnZooKeeperProcess
from tests.kit.processes.zookeeper_process import KeeperProcess, ZooKeeperProcess, running

pytestmark = [pytest.mark.foreign, pytest.mark.slow]

PROVIDER = "authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider"
JAAS = (
    'Server { org.apache.zookeeper.server.auth.DigestLoginModule required user_admin="a-secret"; };'
)
MESSAGE = (
    'username="admin",realm="zk-sasl-md5",nonce="x",cnonce="c",nc=00000001,qop=auth,'
    f'digest-uri="zookeeper/zk-sasl-md5",response={"0" * 32}'
)
CLOSED = "the connection is closed"

Step = tuple[int, bytes]
READ: Step = (Op.GET_DATA, watch_body("/", False))
DIGEST: Step = (Op.AUTH, int_bytes(0) + string_bytes("digest") + buffer_bytes(b"user:secret"))
BEGIN: Step = (Op.SASL, buffer_bytes(b""))
WRONG: Step = (Op.SASL, buffer_bytes(MESSAGE.encode()))

REQUIRED = "sessionRequireClientSASLAuth=true"
KEPT = "allowSaslFailedClients=true"
LISTED = "enforce.auth.enabled=true\nenforce.auth.schemes="


@pytest.mark.parametrize(
    ("config", "steps"),
    [
        (REQUIRED, [READ, READ]),
        (REQUIRED, [DIGEST, READ]),
        (REQUIRED, [BEGIN, WRONG, READ]),
        (REQUIRED, [BEGIN, READ]),
        ("", [BEGIN, WRONG, READ]),
        ("", [WRONG, READ]),
        (KEPT, [BEGIN, WRONG, READ]),
        (LISTED + "digest", [DIGEST, READ]),
        (LISTED + "digest,sasl", [READ]),
        (LISTED + "ip", [READ]),
        ("requireClientAuthScheme=sasl", [READ, READ]),
    ],
)
def test_zs_1_a_login_that_is_missing_or_wrong_has_the_same_end(
    tmp_path: Path, config: str, steps: list[Step]
) -> None:
    jaas = tmp_path / "jaas.conf"
    jaas.write_text(JAAS)
    login = f"java.security.auth.login.config={jaas}"
    lines = f"{PROVIDER}\n{config}"
    own = OwnZooKeeperProcess(tmp_path / "own", config=f"{lines}\n{login}")
    real = ZooKeeperProcess(tmp_path / "real", config=lines, java_options=[f"-D{login}"])
    assert answers(own, steps) == answers(real, steps)


def answers(server: KeeperProcess, steps: list[Step]) -> list[str]:
    found: list[str] = []
    with running(server):
        session = WireSession(server.port, {}, "one")
        for op, body in steps:
            try:
                found.append(re.sub(r'nonce="[^"]+"', "", repr(session.ask(op, body))))
            except (AssertionError, ConnectionError):
                found.append(CLOSED)
    return found
