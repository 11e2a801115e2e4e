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
OLD_PROGRAM = PROGRAM.with_name("OldJavaZooKeeper.java")  # for 3.4, whose client can do less
PATIENCE_S = 180
TICK_MS = 1000
OLD_VERSION = "3.4.14"
LEAST_LINES = {OLD_VERSION: 50, "3.5.10": 65, "3.8.4": 80, "3.9.3": 80}

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
OLD_SHELL = """\
create /cli data
create -s /cli/s- one
create -e /cli/e two
create /cli/none/x y
ls /cli
ls2 /cli
stat /cli
set /cli more
set /cli never 7
get /cli
addauth digest user:secret
create /cli/own mine auth::cdrwa
getAcl /cli/own
setAcl /cli/own world:anyone:r
getAcl /cli/own
delete /cli
sync /cli
ls /cli true
rmr /cli
ls /
quit
"""
# What the client logs, and when its own thread says that the connection has begun or ended. With
# Java's server, a write that fails is a transaction, too.
_DIFFERENT = re.compile(r"^\d{4}-|type:None|^WATCHER::$|^$|^[cmp]Zxid = |^[cm]time = |^log4j:")
_PROMPT = re.compile(r"\[zk: [^]]*\] ?")
# Since Java 14, an address that is not resolved is printed so, and 3.4 takes this for a name.
HOSTS = "127.0.0.1 localhost 127.0.0.1/<unresolved>\n"


@pytest.fixture(scope="module")
def jaas(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("jaas") / "jaas.conf"
    path.write_text(JAAS)
    return path


@pytest.fixture
def hosts(tmp_path: Path) -> str:
    """The option of Java with which a client of 3.4 finds this machine."""
    path = tmp_path / "hosts"
    path.write_text(HOSTS)
    return f"-Djdk.net.hosts.file={path}"


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
    servers: Sequence[KeeperProcess], jaas: Path, hosts: str, version: str
) -> None:
    jars = foreign.require_zookeeper_client(version)
    parts = [foreign.require_java(), foreign.require_java_compiler(), jars]
    program, sources = PROGRAM, [OLD_PROGRAM, PROGRAM]
    if version == OLD_VERSION:
        program, sources = OLD_PROGRAM, [OLD_PROGRAM]
    classes = compiled(parts, program, sources)
    java = [str(parts[0]), *FRUGAL, f"-Djava.security.auth.login.config={jaas}", hosts]
    run = [*java, "-cp", f"{classes}:{jars}/*", program.stem]
    for logs_in, least in (("false", LEAST_LINES[version]), ("true", 4)):
        own, real = (said_by([*run, each.connect, logs_in])[0] for each in servers)
        assert own == real
        assert len(own) >= least, own


def test_zs_1_the_shell_of_zookeeper_prints_the_same(servers: Sequence[KeeperProcess]) -> None:
    own = printed_by_both(servers, [str(foreign.require_zookeeper_shell())], SHELL)
    assert {"Created /cli/own", "'world,'anyone", "digest: user", "[zookeeper]"} <= set(own)


def test_zs_1_the_shell_of_zookeeper_3_4_prints_the_same(
    servers: Sequence[KeeperProcess], hosts: str
) -> None:
    jars = foreign.require_zookeeper_client(OLD_VERSION)
    java = [
        str(foreign.require_java()),
        *FRUGAL,
        hosts,
        "-Djline.terminal=jline.UnsupportedTerminal",
    ]
    own = printed_by_both(
        servers, [*java, "-cp", f"{jars}/*", "org.apache.zookeeper.ZooKeeperMain"], OLD_SHELL
    )
    assert {"Created /cli/own", "Sync returned 0", "Node not empty: /cli", "[zookeeper]"} <= set(
        own
    )


def printed_by_both(servers: Sequence[KeeperProcess], command: list[str], script: str) -> list[str]:
    """What a shell prints with either server, which is the same.

    Events are printed by a thread of their own, so the order of the lines differs.
    """
    own, real = (
        sorted(
            in_order(line)
            for stream in said_by([*command, "-server", each.connect], script)
            for line in _PROMPT.sub("", "\n".join(stream))
            .replace(each.connect, "SERVER")
            .split("\n")
            if not _DIFFERENT.search(line)
        )
        for each in servers
    )
    assert own == real
    return own


def in_order(line: str) -> str:
    """A list of children has no order."""
    is_list = line.startswith("[") and line.endswith("]")
    return f"[{', '.join(sorted(line[1:-1].split(', ')))}]" if is_list else line


def said_by(command: list[str], stdin: str = "") -> tuple[list[str], list[str]]:
    """What it prints, and what it prints as errors."""
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines(), done.stderr.splitlines()
