"""ZK-6, ZK-7: `metadata` and `groups import-zookeeper` on a real ZooKeeper."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest

from barnabas.cli.main import main
from barnabas.testing.embedded.broker import Broker
from tests.kit.processes.broker_process import broker_process
from tests.kit.processes.command_line import COMMAND
from tests.kit.processes.zookeeper_process import ZooKeeperProcess
from tests.kit.processes.zookeeper_tree import fill
from tests.kit.raw_client import PATIENCE_S

Capture = pytest.CaptureFixture[str]


def run(capture: Capture, *words: str, code: int = 0) -> tuple[str, str]:
    capture.readouterr()
    actual = main(list(words))
    captured = capture.readouterr()
    assert actual == code, captured.err
    return captured.out, captured.err


def test_the_tree_of_a_cluster(
    root: str, tmp_path: Path, capfd: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ZK-6: by an option, by a broker's file, by the environment."""
    fill(root, {"/brokers/ids/1": b'{"host":"a"}', "/controller_epoch": b"7", "/empty": None})
    file = tmp_path / "server.properties"
    file.write_text(f"broker.id=1\nlog.dirs=/none\nzookeeper.connect={root}\n")
    for where in (["--zookeeper-connect", root], ["--config", str(file)], []):
        if not where:
            monkeypatch.setenv("KAFKA_ZOOKEEPER_CONNECT", root)
        assert run(capfd, "metadata", "ls", *where)[0] == "brokers\ncontroller_epoch\nempty\n"
        assert run(capfd, "metadata", "get", "/brokers/ids/1", *where)[0] == '{"host":"a"}\n'
        assert run(capfd, "metadata", "get", "/empty", *where)[0] == "null\n"
        everything = run(capfd, "metadata", "ls", "/brokers", "-R", *where)[0]
        assert everything == "/brokers\n/brokers/ids\n/brokers/ids/1\n"
        stat = run(capfd, "metadata", "get", "/controller_epoch", "--stat", *where)[0]
        assert stat.splitlines()[0] == "7" and stat.splitlines()[2] == "dataVersion = 0"
        stderr = run(capfd, "metadata", "get", "/nothing", *where, code=1)[1]
        assert "there is no node /nothing" in stderr and stderr.count("\n") == 1
    stderr = run(capfd, "metadata", "ls", "/", "--dir", "/d", "--config", str(file), code=2)[1]
    assert "cannot be combined" in stderr


def test_a_zookeeper_that_is_not_there(capfd: Capture, tmp_path: Path) -> None:
    """ZK-6: with its address."""
    file = tmp_path / "server.properties"
    file.write_text("zookeeper.connect=127.0.0.1:1/k\nzookeeper.connection.timeout.ms=300\n")
    stderr = run(capfd, "metadata", "ls", "/", "--config", str(file), code=1)[1]
    assert "zookeeper.connect=127.0.0.1:1/k: no response from ZooKeeper within 300 ms" in stderr
    assert stderr.count("\n") == 1
    stderr = run(capfd, "metadata", "ls", "/", "--zookeeper-connect", "127.0.0.1:x", code=1)[1]
    assert "'127.0.0.1:x' is not an address" in stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_broker_that_waits_for_zookeeper_says_so_early_and_obeys_signals(
    tmp_path: Path, number: signal.Signals
) -> None:
    """UX-4: long before it gives up, for ZooKeeper may be starting."""
    broker = subprocess.Popen(
        [COMMAND, "server", "start", "--data-dir", str(tmp_path), "--port", "0",
         "--override", "zookeeper.connect=127.0.0.1:1",
         "--override", "zookeeper.connection.timeout.ms=3600000"],
        stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        assert broker.stderr is not None
        said = broker.stderr.readline().decode()
        assert broker.poll() is None
        assert "zookeeper.connect=127.0.0.1:1: no response from ZooKeeper yet" in said
        assert "Connection refused" in said and "for up to 3600000 ms" in said
        broker.send_signal(number)
        assert broker.wait(PATIENCE_S) == 0
        rest = broker.stderr.read().decode()
        assert "stopping during startup broker=" in rest
        assert "stopped before startup completed broker=" in rest and "Traceback" not in rest
    finally:
        broker.kill()
        broker.communicate()


@pytest.mark.foreign
def test_a_tree_of_kafka_is_imported(
    root: str, shared: Path, tmp_path: Path, capfd: Capture
) -> None:
    """ZK-6: all of it or nothing, once."""
    file = shared / "fixtures" / "kafka-3.9" / "zookeeper" / "single-running.json"
    where = ("--zookeeper-connect", root)
    output = run(capfd, "metadata", "import", str(file), *where)[0]
    assert output.splitlines()[0].endswith(f"from {file} into {root}.")
    theirs = json.loads(file.read_text())
    kept = {path for path, node in theirs.items() if not node.get("ephemeral")}
    ours = set(run(capfd, "metadata", "ls", "-R", *where)[0].splitlines())
    assert {path for path in kept if not path.startswith("/zookeeper")} <= ours
    stderr = run(capfd, "metadata", "import", str(file), *where, code=1)[1]
    assert "already" in stderr
    assert "name the target" in run(capfd, "metadata", "import", str(file), code=2)[1]


def test_a_tree_moves_to_another_chroot_and_to_a_directory(
    root: str, tmp_path: Path, capfd: Capture
) -> None:
    """ZK-6: what `metadata export` writes is imported unchanged."""
    file, target = tmp_path / "tree.json", tmp_path / "target"
    target.mkdir()
    with broker_process(tmp_path, f"zookeeper.connect={root}") as broker:
        servers = ("--bootstrap-server", broker.bootstrap_servers)
        run(capfd, "topics", "create", "moved", "--partitions", "3", *servers)
        _, stderr = run(capfd, "metadata", "export", str(file), "--zookeeper-connect", root)
        assert "with 1 topic into" in stderr and "2 ephemeral nodes will not" in stderr
        assert broker.stop() == 0
    first = json.loads(file.read_text())
    persistent = {path: node.get("data") for path, node in first.items() if "ephemeral" not in node}
    for where in (("--zookeeper-connect", f"{root}-again"), ("--dir", str(target))):
        run(capfd, "metadata", "import", str(file), *where)
        tree = json.loads(run(capfd, "metadata", "export", "-", *where)[0])
        assert {path: node["data"] for path, node in tree.items() if path != "/"} == {
            path: data for path, data in persistent.items() if path != "/"
        }


def test_an_export_without_the_chroot_finds_no_cluster(
    zookeeper: ZooKeeperProcess, capfd: Capture
) -> None:
    """ZK-6: other programs' nodes in the root are not exported."""
    fill(f"{zookeeper.connect}/other", {"/program": b"1"})
    where = ("--zookeeper-connect", zookeeper.connect)
    stderr = run(capfd, "metadata", "export", "-", *where, code=1)[1]
    assert "no metadata of a cluster here; check the chroot" in stderr


def test_offsets_of_old_consumers(root: str, broker: Broker, capfd: Capture) -> None:
    """ZK-7: shown first; taken over where they fit; ZooKeeper stays as it was."""
    servers = ("--bootstrap-server", broker.bootstrap_servers)
    run(capfd, "topics", "create", "old", *servers)
    run(capfd, "topics", "create", "other", *servers)
    perf = ("perf", "produce", "old", "--num-records", "20", "--record-size", "10", *servers)
    run(capfd, *perf)
    nodes = {
        "/consumers/orders/offsets/old/0": b"3",
        "/consumers/orders/offsets/other/0": b"99999",
        "/consumers/orders/offsets/other/9": b"4",
        "/consumers/orders/offsets/gone/0": b"4",
        "/consumers/orders/offsets/old/x": b"4",
        "/consumers/late/offsets/other/0": b"0",
        "/consumers/late/ids/late_host": b"{}",
    }
    fill(root, nodes)
    command = ("groups", "import-zookeeper", "--zookeeper-connect", root, *servers)
    described = ("groups", "describe", "orders", "--offsets", *servers)

    table, remarks = run(capfd, *command)
    assert [line.split() for line in table.splitlines()[2:]][:1] == [["late", "other", "0", "0"]]
    assert table.count("orders ") == 2
    for remark in (
        "late: 1 consumer still running on ZooKeeper",
        "left out /consumers/orders/offsets/old/x",
        "orders: left out gone-0, which does not exist",
        "orders: left out other-9, which does not exist",
        "New offset (99999) is higher than latest",
        "This was a dry run",
    ):
        assert remark in remarks, remark
    run(capfd, *described, code=1)

    values = json.loads(run(capfd, *command, "--group", "orders", "--execute", "--json")[0])
    assert values["executed"] is True and len(values["offsets"]) == 2
    rows = [line.split() for line in run(capfd, *described)[0].splitlines() if "orders" in line]
    assert {(row[1], row[2]): row[3] for row in rows}["old", "0"] == "3"
    stderr = run(capfd, *command, "--group", "orders", "--execute")[1]
    assert stderr.count("where it has since committed") == 2
    table = run(capfd, *command, "--group", "orders", "--execute", "--overwrite")[0]
    assert table.count("orders ") == 2
    for path, data in nodes.items():
        read = run(capfd, "metadata", "get", path, "--zookeeper-connect", root)[0]
        assert read == data.decode() + "\n", "never written"
    stderr = run(capfd, *command, "--group", "stranger", code=1)[1]
    assert "ZooKeeper has no offsets of group 'stranger'" in stderr
    stderr = run(capfd, "groups", "import-zookeeper", *servers, code=1)[1]
    assert "--zookeeper-connect" in stderr
