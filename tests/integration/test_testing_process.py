"""Brokers in a process of their own: the same use, and no process that outlives its owner."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from barnabas import Broker, Cluster
from barnabas.errors import ConfigError
from barnabas.testing.embedded.data_directory import DataDirectory
from tests.kit.raw_client import PATIENCE_S
from tests.kit.waiting import wait_until

OWNER = """
import os, sys, time
import barnabas
broker = barnabas.Broker(process=True).start()
heir = os.fork() if sys.argv[1] == "with an heir" else 0
if heir or sys.argv[1] == "alone":
    print(broker.pid, heir, broker.data_dir, flush=True)
time.sleep(600)
"""


def test_tk_1_a_process_of_its_own_is_used_as_a_thread() -> None:
    with Broker(process=True) as broker:
        pid, port = broker.pid, broker.port
        assert pid != os.getpid() and psutil.pid_exists(pid)
        topic = broker.topic("t")
        topic.send(b"a")
        broker.stop()
        assert not psutil.pid_exists(pid)
        with pytest.raises(ConfigError, match="the broker is not running"):
            _ = broker.port
        broker.start()
        assert (broker.port, topic.values()) == (port, [b"a"])
        with broker.snapshot() as snapshot, Broker(snapshot=snapshot) as copy:
            assert copy.topic("t").values() == [b"a"]
        with pytest.raises(ConfigError, match=f"runs in process {broker.pid}, so its objects are"):
            _ = broker.server
        pid, directory = broker.pid, broker.data_dir
    assert not psutil.pid_exists(pid) and not directory.exists()


def test_tk_1_what_is_written_survives_a_kill() -> None:
    with Broker(process=True) as broker:
        topic = broker.topic("t")
        topic.send(b"a")
        pid = broker.pid
        broker.kill()
        assert not psutil.pid_exists(pid) and not broker.is_running
        broker.start()
        assert topic.values() == [b"a"]
    with Broker() as broker, pytest.raises(ConfigError, match="create it with process=True"):
        broker.kill()


def test_tk_1_a_process_that_ended_by_itself_is_told_and_replaced() -> None:
    broker = Broker(process=True).start()
    os.kill(broker.pid, signal.SIGKILL)
    with pytest.raises(OSError, match=r"the broker's process \d+ has ended by signal 9"):
        broker.stop()
    broker.start()
    broker.close()


def test_tk_1_a_failed_start_says_why_in_one_line(tmp_path: Path) -> None:
    before = psutil.Process().children()  # other tests' brokers, in this process
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        broker = Broker(tmp_path, port, process=True)
        with pytest.raises(ConfigError, match=rf"\A.*port {port} is in use[^\n]*\Z"):
            broker.start()
        assert not broker.is_running
    with broker:
        assert broker.port == port
    with pytest.raises(ConfigError, match=r"num\.partitions"):
        Broker(config={"num.partition": 3}, process=True).start()
    assert psutil.Process().children() == before


@pytest.mark.parametrize("kind", ["alone", "with an heir"])
def test_tk_1_it_ends_with_its_owner_however_that_ends(kind: str) -> None:
    """Even if another process, which was forked from the owner, has the pipe as well."""
    owner = subprocess.Popen([sys.executable, "-c", OWNER, kind], stdout=subprocess.PIPE, text=True)
    try:
        assert owner.stdout is not None
        pid, heir, directory = owner.stdout.readline().split()
    finally:
        owner.kill()
        owner.wait(PATIENCE_S)
    try:
        wait_until(lambda: not psutil.pid_exists(int(pid)), PATIENCE_S)
    finally:
        if int(heir):
            os.kill(int(heir), signal.SIGKILL)
        owner.stdout.close()
    # Whoever is killed removes nothing.
    assert Path(directory).is_dir()
    shutil.rmtree(directory)


def test_tk_1_another_process_does_not_remove_it() -> None:
    """As one that was forked from its owner's, and ends first."""
    directory = DataDirectory(None)
    made = directory.make()
    process_id = os.fork()
    if process_id == 0:
        directory.remove()
        os.execv(sys.executable, [sys.executable, "-c", ""])
    os.waitpid(process_id, 0)
    assert made.is_dir()
    directory.remove()


@pytest.mark.parametrize("process", [False, True])
def test_tk_1_a_forked_process_leaves_its_parents_broker_alone(process: bool) -> None:
    """The end of its `with` block reports nothing, and stops nothing."""
    program = f"""
import os, sys, barnabas
with barnabas.Broker(process={process}) as broker:
    child = os.fork()
    if child == 0:
        sys.exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    topic = broker.topic("t")
    topic.send(b"a")
    assert topic.values() == [b"a"]
assert not broker.is_running
"""
    command = [sys.executable, "-W", "error::RuntimeWarning", "-c", program]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_tk_1_a_cluster_in_a_process_of_its_own() -> None:
    with Cluster(2, process=True) as cluster:
        topic = cluster.topic("t", replication_factor=2)
        topic.send(b"a")
        leader = topic.wait_for_leader()
        servers = cluster.bootstrap_servers
        cluster.stop_broker(leader)
        assert leader not in cluster.running_broker_ids
        assert cluster.bootstrap_servers in servers.split(",")
        other = topic.wait_for_leader(other_than=leader)
        topic.wait_for_isr(0, [other])
        cluster.start_broker(leader)
        topic.wait_for_isr(0, [leader, other])
        with pytest.raises(ConfigError, match=f"broker {leader} is running"):
            cluster.start_broker(leader)
        cluster.stop()
        cluster.start()
        assert sorted(cluster.bootstrap_servers.split(",")) == sorted(servers.split(","))
        assert topic.values() == [b"a"]
