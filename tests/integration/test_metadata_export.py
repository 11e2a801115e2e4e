"""ZK-6: `metadata export`, and back into another broker."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from barnabas.cli.main import main
from tests.kit.processes.broker_process import BrokerProcess, broker_process

Capture = pytest.CaptureFixture[str]
EXPORT = ("metadata", "export")


def run(capture: Capture, *words: str, code: int = 0) -> tuple[str, str]:
    capture.readouterr()
    actual = main(list(words))
    captured = capture.readouterr()
    assert actual == code, captured.err
    return captured.out, captured.err


def produce(servers: str, file: Path, topic: str) -> None:
    assert main(["produce", topic, "--file", str(file), "--bootstrap-server", servers]) == 0


def consume(capture: Capture, servers: str, topic: str) -> list[str]:
    where = ("--from-beginning", "--partition", "0", "--exit-at-end", "--bootstrap-server")
    return run(capture, "consume", topic, *where, servers)[0].splitlines()


def test_a_lost_directory_comes_back_from_its_backup(tmp_path: Path, capfd: Capture) -> None:
    """The logs and the file are enough: records, ids and configs are those of before."""
    file, lines = tmp_path / "tree.json", tmp_path / "lines"
    lines.write_text("one\ntwo\n")
    (tmp_path / "first").mkdir()
    with broker_process(tmp_path / "first") as broker:
        servers = ("--bootstrap-server", broker.bootstrap_servers)
        run(capfd, "topics", "create", "kept", "--config", "retention.ms=1234567890", *servers)
        produce(broker.bootstrap_servers, lines, "kept")
        # The broker runs: its files are read as they are.
        _, stderr = run(capfd, *EXPORT, str(file), "--dir", str(broker.data_dir))
        assert "with 1 topic into" in stderr and "1 ephemeral" not in stderr.split(";")[0]
        assert file.stat().st_mode & 0o777 == 0o600
        assert "exists; choose another name" in run(capfd, *EXPORT, str(file), code=1)[1]
        assert broker.stop() == 0
    second = BrokerProcess(tmp_path / "second")
    shutil.copytree(broker.data_dir, second.data_dir)
    for copy in second.data_dir.glob("barnabas-metadata.*"):
        copy.unlink()
    run(capfd, "metadata", "import", str(file), "--dir", str(second.data_dir))
    second.start()
    try:
        assert consume(capfd, second.bootstrap_servers, "kept") == ["one", "two"]
        servers = ("--bootstrap-server", second.bootstrap_servers)
        assert "1234567890" in run(capfd, "configs", "describe", "--topic", "kept", *servers)[0]
    finally:
        assert second.stop() == 0
    after = json.loads(run(capfd, *EXPORT, "-", "--dir", str(second.data_dir))[0])
    before = json.loads(file.read_text())
    assert after["/brokers/topics/kept"]["data"] == before["/brokers/topics/kept"]["data"]
    assert after["/cluster/id"]["data"] == before["/cluster/id"]["data"]
