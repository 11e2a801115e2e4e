"""ZS-1: ZooKeeper's own Java client and shell get from our server what a real one answers."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.kit import foreign
from tests.kit.clients.java_client import FRUGAL, compiled
from tests.kit.processes.own_zookeeper_process import OwnZooKeeperProcess
from tests.kit.processes.zookeeper_process import KeeperProcess, ZooKeeperProcess

pytestmark = [pytest.mark.foreign, pytest.mark.slow]

PROGRAM = Path(__file__).with_name("JavaZooKeeper.java")
PATIENCE_S = 180
TICK_MS = 1000
LEAST_LINES = {"3.5.10": 65, "3.8.4": 80, "3.9.3": 80}

JAAS = """
Server {
    org.apache.zookeeper.server.auth.DigestLoginModule required
    user_admin="a-secret";
};
Client {
    org.apache.zookeeper.server.auth.DigestLoginModule required
    username="admin" password="a-secret";
};
"""
SASL = "authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider"
CONFIG = f"extendedTypesEnabled=true\n{SASL}\n4lw.commands.whitelist=*"

SHELL = """\
create /cli data
create -s /cli/s- one
create -e /cli/e two
create -c /cli/c
create -t 3600000 /cli/t
create /cli/none/x
ls -R /cli
ls -w /cli
set /cli more
set -v 7 /cli never
get /cli
getAllChildrenNumber /cli
getEphemerals /cli
addauth digest user:secret
create /cli/own mine auth::cdrwa
getAcl /cli/own
setAcl /cli/own world:anyone:r
getAcl /cli/own
delete /cli
sync /cli
addWatch -m PERSISTENT /cli
removewatches /cli
whoami
deleteall /cli
ls /
quit
"""
# What the client logs, and when its own thread says that the connection has begun or ended.
_DIFFERENT = re.compile(r"^\d{4}-|type:None|^WATCHER::$|^$")


@pytest.fixture(scope="module")
def jaas(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("jaas") / "jaas.conf"
    path.write_text(JAAS)
    return path


@pytest.fixture
def servers(tmp_path: Path, jaas: Path) -> Iterator[Sequence[KeeperProcess]]:
    """Ours, and a real one."""
    login = f"java.security.auth.login.config={jaas}"
    own = OwnZooKeeperProcess(tmp_path / "own", tick_ms=TICK_MS, config=f"{CONFIG}\n{login}")
    real = ZooKeeperProcess(
        tmp_path / "real", tick_ms=TICK_MS, config=CONFIG, java_options=[f"-D{login}"]
    )
    try:
        own.start()
        real.start()
        yield own, real
    finally:
        for each in (own, real):
            if each.process is not None:
                each.kill()


@pytest.mark.parametrize("version", LEAST_LINES)
def test_zs_1_the_java_client_prints_the_same(
    servers: Sequence[KeeperProcess], jaas: Path, version: str
) -> None:
    jars = foreign.require_zookeeper_client(version)
    parts = [foreign.require_java(), foreign.require_java_compiler(), jars]
    classes = compiled(parts, PROGRAM, [PROGRAM])
    java = [str(parts[0]), *FRUGAL, f"-Djava.security.auth.login.config={jaas}"]
    run = [*java, "-cp", f"{classes}:{jars}/*", PROGRAM.stem]
    for logs_in, least in (("false", LEAST_LINES[version]), ("true", 4)):
        own, real = (said_by([*run, each.connect, logs_in])[0] for each in servers)
        assert own == real
        assert len(own) >= least, own


def test_zs_1_the_shell_of_zookeeper_prints_the_same(servers: Sequence[KeeperProcess]) -> None:
    script = str(foreign.require_zookeeper_shell())
    # Events are printed by a thread of their own, so the order of the lines differs.
    own, real = (
        sorted(
            line.replace(each.connect, "SERVER")
            for stream in said_by([script, "-server", each.connect], SHELL)
            for line in stream
            if not _DIFFERENT.search(line)
        )
        for each in servers
    )
    assert own == real
    assert {"Created /cli/own", "'world,'anyone", "digest: user", "[zookeeper]"} <= set(own)


def said_by(command: list[str], stdin: str = "") -> tuple[list[str], list[str]]:
    """What it prints, and what it prints as errors."""
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines(), done.stderr.splitlines()
