"""ZS-1: our ZooKeeper server answers the four-letter words as real ones of 3.8 and 3.9 do.

The same requests come to both. What is compared is every line with its fields in their order. Only
numbers of sessions, ports, times and sizes on the disk differ.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import KazooException

from tests.kit import foreign
from tests.kit.processes.own_zookeeper_process import OwnZooKeeperProcess
from tests.kit.processes.zookeeper_process import KeeperProcess, ZooKeeperProcess, kazoo_clients
from tests.kit.waiting import wait_until

pytestmark = [pytest.mark.foreign, pytest.mark.slow]

SESSION_S = 60.0  # so that no ping comes in between
CONFIG = "4lw.commands.whitelist=*"
TICK_MS = 1000
PATIENCE_S = 20.0

# What Java and Python say of themselves, and Java's times at which nothing expires.
_IGNORED = re.compile(r"^(java\.|os\.memory|user\.(name|home)|python\.|\d expire at DATE:$)")
_VARYING = (
    (r"(sid=|sessionId: |^|\t)0x[0-9a-f]{6,}\b", r"\1SESSION"),
    (r"127\.0\.0\.1:\d+", "ADDRESS"),
    (r"(est|lresp|llat|minlat|avglat|maxlat)=\d+", r"\1=NUMBER"),
    (r"(min/avg/max: )\S+", r"\1NUMBERS"),
    (r"(expire at )\w{3} \w{3} \d\d \d\d:\d\d:\d\d \S+ \d{4}", r"\1DATE"),
    (r"(version[:=] ?)\S+, built on \d{4}-\d\d-\d\d \d\d:\d\d UTC", r"\1VERSION"),
    (r"(dir_size: |(?:DirSize|LogSize|Backlog|Port)=)-?\d+", r"\1NUMBER"),
    # With Java's server, a write that fails is a transaction, too.
    (r"(lzxid=)0x[0-9a-f]{1,8}\b", r"\1NUMBER"),
    (r"(data\w*Dir)=.*", r"\1=DIRECTORY"),
    (r"Sets \(\d\)", "Sets (NUMBER)"),
    (r"(host.name|os.arch)=.*", r"\1=NAME"),
)
OPERATIONS: dict[str, Callable[[KazooClient], object]] = {
    "a creation": lambda client: client.create("/a", b"data"),
    "a creation that fails": lambda client: client.create("/a"),
    "a container": lambda client: client.create("/c/x", makepath=True),
    "an ephemeral": lambda client: client.create("/a/e", ephemeral=True),
    "a read": lambda client: client.get("/a"),
    "a read that fails": lambda client: client.get("/none"),
    "an existence": lambda client: client.exists("/a"),
    "children": lambda client: client.get_children("/a"),
    "children with the stat": lambda client: client.get_children("/a", include_data=True),
    "a write": lambda client: client.set("/a", b"other"),
    "a write that fails": lambda client: client.set("/a", b"other", version=9),
    "an ACL": lambda client: client.get_acls("/a"),
    "a login": lambda client: client.add_auth("digest", "user:secret"),
    "a sync": lambda client: client.sync("/a"),
    "a multi": lambda client: client.transaction().commit(),
    "a deletion": lambda client: client.delete("/c/x"),
}


@pytest.fixture(params=["3.8", "3.9.3"])
def servers(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[list[KeeperProcess]]:
    """Ours, and a real one."""
    jars = ""
    if request.param != "3.8":
        jars = f"{foreign.require_zookeeper_server(request.param)}/*"
    servers: list[KeeperProcess] = [
        OwnZooKeeperProcess(tmp_path / "own", tick_ms=TICK_MS, config=CONFIG),
        ZooKeeperProcess(tmp_path / "real", tick_ms=TICK_MS, config=CONFIG, class_path=jars),
    ]
    try:
        for each in servers:
            each.start()
        yield servers
    finally:
        for each in servers:
            if each.process is not None:
                each.kill()


@pytest.fixture
def clients(servers: list[KeeperProcess]) -> Iterator[list[KazooClient]]:
    """A client of each server. Its server has just begun to count."""
    for server in servers:
        assert server.word(b"srst") == "Server stats reset.\n"
    with kazoo_clients([each.connect for each in servers], SESSION_S) as clients:
        yield clients


def fill(client: KazooClient) -> None:
    """Create two nodes, one of them ephemeral, and watch one."""
    client.create("/a", b"data")
    client.create("/a/e", ephemeral=True)
    client.get("/a", watch=print)


def lines(server: KeeperProcess, word: str) -> list[str]:
    """What it answers, without what varies. Java's maps have no order."""
    text = server.word(word.encode())
    for pattern, replacement in _VARYING:
        text = re.sub(pattern, replacement, text, flags=re.MULTILINE)
    return sorted(line for line in text.split("\n") if not _IGNORED.match(line))


def agree(servers: list[KeeperProcess], word: str) -> list[str]:
    """Returns the answer in which both agree. Java's server counts a response after it was sent."""
    found: list[list[str]] = []

    def is_same() -> bool:
        found[:] = (lines(each, word) for each in servers)
        return found[0] == found[1]

    with suppress(AssertionError):  # the comparison below shows the difference
        wait_until(is_same, PATIENCE_S)
    own, real = found
    assert own == real, word
    return own


def test_zs_1_each_word_has_the_lines_and_fields_of_a_real_server(
    servers: list[KeeperProcess], clients: list[KazooClient]
) -> None:
    for client in clients:
        fill(client)
        client.exists("/none", watch=print)
    for word in ("srvr", "stat", "cons", "dump", "wchs", "wchc", "wchp", "isro", "ruok"):
        agree(servers, word)
    for word in ("conf", "dirs", "envi", "crst", "srst", "cons", "stat"):
        agree(servers, word)


def test_zs_1_the_figures_of_mntr_are_those_of_a_real_server(
    servers: list[KeeperProcess], clients: list[KazooClient]
) -> None:
    """All of ours are among the hundreds of Java's, many of which are about its inner workings."""
    for client in clients:
        fill(client)
        client.get_children("/", watch=print)
    own, real = (
        dict(line.split("\t") for line in each.word(b"mntr").splitlines()) for each in servers
    )
    assert own.keys() <= real.keys()
    differing = {name for name, value in own.items() if real[name] != value}
    assert differing <= {
        *("zk_version", "zk_uptime", "zk_open_file_descriptor_count"),
        *("zk_avg_latency", "zk_max_latency", "zk_min_latency"),
    }
    assert own["zk_watch_count"] == "2"
    assert float(own["zk_avg_latency"]) > 0


def test_zs_1_cons_names_the_last_operation_as_a_real_server_does(
    servers: list[KeeperProcess], clients: list[KazooClient]
) -> None:
    for operation in OPERATIONS.values():
        for client in clients:
            with suppress(KazooException):
                operation(client)
        assert any("lcxid=" in line for line in agree(servers, "cons"))
