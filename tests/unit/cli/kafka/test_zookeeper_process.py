"""UX-5: what `zookeeper-server-start.sh` and `zkServer.sh` read of a configuration file."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.cli.cluster.zookeeper import missing_part
from barnabas.cli.kafka.zookeeper_process import CannotRun, server_of, stop
from barnabas.cli.main import main


def test_ux_5_a_server_is_where_its_file_says(tmp_path: Path) -> None:
    config = tmp_path / "zoo.cfg"
    config.write_text(f"dataDir={tmp_path}/tree\n")
    server = server_of(config)
    assert (server.address, server.log) == ("localhost:2181", tmp_path / "tree.log")
    config.write_text("dataDir=/tree\nclientPort=5\nclientPortAddress=127.0.0.9\n")
    assert server_of(config).address == "127.0.0.9:5"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("clientPort=2181\n", "add dataDir="),
        ("dataDir=/x\nclientPort=70000\n", "not a port"),
        ("dataDir=/x\nclientPort=x\n", "not a port"),
    ],
)
def test_ux_4_what_a_file_lacks_is_said(text: str, reason: str, tmp_path: Path) -> None:
    config = tmp_path / "zoo.cfg"
    config.write_text(text)
    with pytest.raises(CannotRun, match=reason):
        server_of(config)


def test_one_that_never_ran_is_not_stopped(tmp_path: Path) -> None:
    config = tmp_path / "zoo.cfg"
    config.write_text(f"dataDir={tmp_path}\n")
    assert not stop(server_of(config))


def test_ux_5_how_to_get_what_is_missing_is_said(tmp_path: Path) -> None:
    said = missing_part({"PATH": "/usr/bin"}, tmp_path / "none.jar")
    assert "`apt-get install zookeeper`" in said and "not installed here" in said


def test_ux_5_zk_server_finds_its_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the directory that ZooKeeper's own script looks in, or under the path that is given."""
    monkeypatch.setenv("ZOOCFGDIR", str(tmp_path))
    assert main(["zkServer.sh", "status"]) == 1
    assert "install-scripts DIR` writes one" in capsys.readouterr().err
    (tmp_path / "zookeeper.properties").write_text("dataDir=/x\nclientPort=1\n")
    for words in (["status"], ["status", "zookeeper.properties"], ["--config", str(tmp_path)]):
        assert main(["zkServer.sh", *words, *["status"] * (words[0] != "status")]) == 1
        output, errors = capsys.readouterr()
        assert output == (
            "Client port found: 1. Client address: localhost. Client SSL: false.\n"
            "Error contacting service. It is probably not running.\n"
        )
        assert errors == f"Using config: {tmp_path}/zookeeper.properties\n"
