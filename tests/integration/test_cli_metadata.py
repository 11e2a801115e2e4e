"""ZK-6: `metadata get|ls|import`, of a running broker and of a stopped one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from barnabas.cli.main import main
from tests.kit.processes.broker_process import BrokerProcess, broker_process

if TYPE_CHECKING:
    from typing import Any

Capture = pytest.CaptureFixture[str]


def run(capture: Capture, *words: str, code: int = 0) -> tuple[str, str]:
    capture.readouterr()
    actual = main(["metadata", *words])
    captured = capture.readouterr()
    assert actual == code, captured.err
    return captured.out, captured.err


def topic(name: str, partitions: int = 1) -> dict[str, Any]:
    """The nodes of a topic whose partition 0 alone has a state."""
    data = {"version": 1, "partitions": {str(number): [0] for number in range(partitions)}}
    state = {"version": 1, "leader": 0, "leader_epoch": 2, "controller_epoch": 5, "isr": [0]}
    path = f"/brokers/topics/{name}"
    return {
        "/brokers": {"data": None},
        "/brokers/topics": {"data": None},
        path: {"data": json.dumps(data)},
        f"{path}/partitions": {"data": None},
        f"{path}/partitions/0": {"data": None},
        f"{path}/partitions/0/state": {"data": json.dumps(state)},
    }


def test_the_tree_can_be_read_while_the_broker_runs_and_afterwards(
    tmp_path: Path, capfd: Capture
) -> None:
    with broker_process(tmp_path) as broker:
        where = ("--dir", str(broker.data_dir))
        create = ["topics", "create", "seen", "--bootstrap-server", broker.bootstrap_servers]
        assert main(create) == 0
        for is_running in (True, False):
            if not is_running:
                assert broker.stop() == 0
            assert "topics\n" in run(capfd, "ls", "/brokers", *where)[0]
            data = json.loads(run(capfd, "get", "/brokers/topics/seen", *where)[0])
            assert data["partitions"] == {"0": [0]}
            everything = run(capfd, "ls", "--recursive", "/", *where)[0].splitlines()
            assert everything == sorted(everything) and everything[0] == "/"
            assert "/brokers/topics/seen/partitions/0/state" in everything
            assert run(capfd, "get", "/brokers/topics", *where)[0] == "null\n"
        output, _ = run(capfd, "get", "/controller_epoch", "--stat", *where)
        assert output.splitlines()[0] == "1"
        assert output.splitlines()[4] == "numChildren = 0"


def test_an_import_says_what_it_did(tmp_path: Path, capfd: Capture) -> None:
    """ZK-6: ephemeral nodes stay behind; a missing state gets an epoch above those in the log."""
    tree = topic("t", partitions=2)
    tree["/brokers/ids"] = {"data": None}
    tree["/brokers/ids/0"] = {"data": "{}", "ephemeral": True}
    file = tmp_path / "tree.json"
    file.write_text(json.dumps(tree))
    first, second = tmp_path / "a", tmp_path / "b"
    first.mkdir()
    (second / "t-1").mkdir(parents=True)
    (second / "t-1" / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n6 25\n")
    output, _ = run(capfd, "import", str(file), "--dir", str(first), "--dir", str(second))
    assert output.splitlines() == [
        f"Imported 9 nodes with 1 topic and 2 partitions from {file} into {first}, {second}.",
        "Left out 1 ephemeral node.",
        "Created the states of 1 partition of t, which the tree lacks.",
    ]
    state = "/brokers/topics/t/partitions/{}/state"
    for partition, epoch in ((0, 2), (1, 7)):
        for directory in (first, second):
            data = run(capfd, "get", state.format(partition), "--dir", str(directory))[0]
            assert json.loads(data)["leader_epoch"] == epoch
    assert run(capfd, "ls", "/brokers/ids", "--dir", str(first))[0] == ""
    stderr = run(capfd, "import", str(file), "--dir", str(first), code=1)[1]
    assert stderr.count("\n") == 1 and "already has /brokers/topics/t" in stderr


def test_zs_4_a_tree_is_copied_from_directory_to_directory(tmp_path: Path, capfd: Capture) -> None:
    file = tmp_path / "tree.json"
    file.write_text(json.dumps(topic("t")))
    first, second, properties = tmp_path / "a", tmp_path / "b", tmp_path / "server.properties"
    first.mkdir()
    second.mkdir()
    properties.write_text(f"log.dirs={second}\n")
    run(capfd, "import", str(file), "--dir", str(first))
    source = ("copy", "--from-dir", str(first))
    output, _ = run(capfd, *source, "--to-config", str(properties))
    assert output == f"Imported 6 nodes with 1 topic and 1 partition from {first} into {second}.\n"
    both = [run(capfd, "ls", "-R", "/brokers", "--dir", str(each))[0] for each in (first, second)]
    assert both[0] == both[1]
    assert "already has" in run(capfd, *source, "--to-dir", str(second), code=1)[1]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--to-dir", "b"), "name one source"),
        (("--from-dir", "a", "--from-zookeeper", "x:1", "--to-dir", "b"), "name one source"),
        (("--from-dir", "a"), "name the target"),
        (
            ("--from-dir", "a", "--to-zookeeper", "x:1", "--to-config", "f"),
            "--to-zookeeper cannot be combined with --to-config",
        ),
    ],
)
def test_a_copy_needs_one_source_and_one_target(
    capfd: Capture, words: tuple[str, ...], problem: str
) -> None:
    assert problem in run(capfd, "copy", *words, code=2)[1]


@pytest.mark.foreign
def test_a_brokers_directory_and_its_tree_are_at_home_here(
    tmp_path: Path, shared: Path, capfd: Capture
) -> None:
    """A real Kafka's ZooKeeper tree, as recorded; what it had is there, but for sessions."""
    file = shared / "fixtures" / "kafka-3.9" / "zookeeper" / "single-running.json"
    output, _ = run(capfd, "import", str(file), "--dir", str(tmp_path))
    assert "Left out 2 ephemeral nodes.\n" in output
    theirs = json.loads(file.read_text())
    kept = {path for path, node in theirs.items() if not node.get("ephemeral")}
    ours = set(run(capfd, "ls", "-R", "--dir", str(tmp_path))[0].splitlines())
    assert {path for path in kept if not path.startswith("/zookeeper")} <= ours
    data, _ = run(capfd, "get", "/config/topics/segs", "--dir", str(tmp_path))
    assert data == theirs["/config/topics/segs"]["data"] + "\n"


def test_a_running_broker_is_not_disturbed(tmp_path: Path, capfd: Capture) -> None:
    file = tmp_path / "tree.json"
    file.write_text(json.dumps(topic("t")))
    with broker_process(tmp_path) as broker:
        stderr = run(capfd, "import", str(file), "--dir", str(broker.data_dir), code=1)[1]
        assert stderr.count("\n") == 1 and "in use by a running broker" in stderr
        assert broker.stop() == 0


def test_a_broker_starts_on_an_imported_tree(tmp_path: Path, capfd: Capture) -> None:
    """It leads what it led, in the epochs that the tree says or later ones."""
    file = tmp_path / "tree.json"
    file.write_text(json.dumps(topic("moved", partitions=2)))
    broker = BrokerProcess(tmp_path)
    broker.data_dir.mkdir()
    run(capfd, "import", str(file), "--dir", str(broker.data_dir))
    broker.start()
    try:
        describe = ["topics", "describe", "moved", "--json", "--bootstrap-server"]
        assert main([*describe, broker.bootstrap_servers]) == 0
        (described,) = json.loads(capfd.readouterr().out)
        assert [each["leader"] for each in described["partitions"]] == [0, 0]
    finally:
        assert broker.stop() == 0


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"{", "is not JSON"),
        (b"\xff\xfe\x00", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b"[]", "is not an object that maps paths to nodes"),
        (b'{"brokers": {"data": null}}', "'brokers' is not a node's path"),
        (b'{"/a": 5}', "not an object with data"),
        (b'{"/a": {"dat": "x"}}', "/a has neither data nor base64"),
        (b"{}", "the tree has no nodes"),
        (b'{"/a/b": {"data": null}}', "its parent /a is not"),
        (b'{"/cluster": {"data": null}, "/cluster/id": {"data": "{}"}}', "/cluster/id"),
    ],
)
def test_a_file_that_is_no_tree_is_one_line(
    tmp_path: Path, capfd: Capture, content: bytes, problem: str
) -> None:
    """UX-4: and the store is as empty as before."""
    file = tmp_path / "tree.json"
    file.write_bytes(content)
    directory = tmp_path / "data"
    directory.mkdir()
    (directory / "meta.properties").write_text("version=0\nbroker.id=0\ncluster.id=abc\n")
    stderr = run(capfd, "import", str(file), "--dir", str(directory), code=1)[1]
    assert stderr.count("\n") == 1 and problem in stderr
    file.write_text(json.dumps(topic("t")))
    run(capfd, "import", str(file), "--dir", str(directory))


def test_another_clusters_directory_is_refused(tmp_path: Path, capfd: Capture) -> None:
    """UX-4."""
    identity = {"/cluster": {"data": None}, "/cluster/id": {"data": '{"version":"1","id":"xyz"}'}}
    file = tmp_path / "tree.json"
    file.write_text(json.dumps(identity))
    (tmp_path / "meta.properties").write_text("version=0\nbroker.id=0\ncluster.id=abc\n")
    stderr = run(capfd, "import", str(file), "--dir", str(tmp_path), code=1)[1]
    assert stderr.count("\n") == 1 and "cluster abc" in stderr and "xyz" in stderr


def test_what_is_not_there_is_one_line(tmp_path: Path, capfd: Capture) -> None:
    """UX-4: no directory, no metadata in it, no such node, no path."""
    for words, code, problem in (
        (["get", "/x", "--dir", str(tmp_path)], 1, "is not a log directory of a broker"),
        (["ls", "/", "--dir", str(tmp_path / "missing")], 1, "missing"),
        (["ls", "brokers", "--dir", str(tmp_path)], 2, "not the path of a node"),
        (["get", "/a//b", "--dir", str(tmp_path)], 2, "not the path of a node"),
        (["import", str(tmp_path / "none"), "--dir", str(tmp_path)], 1, "no such file"),
        (["import", str(tmp_path / "none")], 2, "--dir"),
    ):
        stderr = run(capfd, *words, code=code)[1]
        assert stderr.count("\n") == 1 and problem in stderr, words
    (tmp_path / "tree.json").write_text(json.dumps(topic("t")))
    run(capfd, "import", str(tmp_path / "tree.json"), "--dir", str(tmp_path))
    stderr = run(capfd, "get", "/nobody", "--dir", str(tmp_path), code=1)[1]
    assert stderr.count("\n") == 1 and "there is no node /nobody" in stderr
