"""UX-5: `server start -daemon` and `server stop` with real brokers.

Nothing here stops a broker but by its own directory: others may run on this machine.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from barnabas.cli.server.pid_file import FILE_NAME, process_began_ticks, read_pid_file
from barnabas.testing import RemoteBroker
from tests.kit.processes.broker_process import COMMAND, BrokerProcess, broker_process, free_port


def run(*words: str, code: int = 0) -> tuple[str, str]:
    """Standard output and error of a command that ends with this code."""
    done = subprocess.run(
        [str(COMMAND), *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout, done.stderr


@pytest.mark.parametrize("by", ["--dir", "--port", "--pid"])
def test_a_broker_is_stopped_in_order(tmp_path: Path, by: str) -> None:
    """The clean marker is there, and the pid file gone, when the command ends."""
    with broker_process(tmp_path) as broker:
        assert broker.process is not None
        pid = broker.process.pid
        value = {"--dir": broker.data_dir, "--port": broker.port, "--pid": pid}[by]
        output, _ = run("server", "stop", by, str(value))
        assert output == f"Stopped server {pid} ({broker.data_dir}).\n"
        assert broker.process.wait(120) == 0
        assert (broker.data_dir / ".kafka_cleanshutdown").exists()
        assert not (broker.data_dir / FILE_NAME).exists()
        _, stderr = run("server", "stop", by, str(value), code=1)
        assert stderr.startswith("barnabas server stop: no server to stop ")
        assert stderr.count("\n") == 1


def test_a_properties_file_says_which_broker_as_it_says_where_its_log_is(tmp_path: Path) -> None:
    """UX-5: `server stop server.properties`; one that means no running broker stops none."""
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    with broker_process(tmp_path / "a") as first, broker_process(tmp_path / "b") as second:
        file = tmp_path / "server.properties"
        file.write_text(f"log.dirs={tmp_path / 'none'}\n")
        _, stderr = run("server", "stop", str(file), code=1)
        assert f"no server to stop on {tmp_path / 'none'}" in stderr
        file.write_text(f"broker.id=0\nlog.dirs={second.data_dir},/elsewhere\n")
        output, _ = run("server", "stop", str(file))
        assert second.process is not None
        assert output == f"Stopped server {second.process.pid} ({second.data_dir}).\n"
        assert second.process.wait(120) == 0
        assert first.process is not None and first.process.poll() is None


def test_without_options_a_broker_elsewhere_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """UX-5: only the default directory's broker is meant, even if another is the only one."""
    monkeypatch.setenv("KAFKA_LOG_DIRS", str(tmp_path / "default"))
    with broker_process(tmp_path) as broker:
        _, stderr = run("server", "stop", code=1)
        assert f"no server to stop on {tmp_path / 'default'}; there is " in stderr
        assert broker.process is not None and broker.process.poll() is None
        monkeypatch.setenv("KAFKA_LOG_DIRS", str(broker.data_dir))
        run("server", "stop")
        assert broker.process.wait(120) == 0


def test_what_a_killed_broker_left_stops_no_other_process(tmp_path: Path) -> None:
    """The number in a stale file may be another process's by now."""
    broker = BrokerProcess(tmp_path)
    broker.start()
    assert read_pid_file(broker.data_dir) is not None
    broker.kill()
    innocent = os.getpid()
    (broker.data_dir / FILE_NAME).write_text(
        f"{innocent}\n{process_began_ticks(innocent)}\nPLAINTEXT://:{broker.port}\n"
    )
    _, stderr = run("server", "stop", "--dir", str(broker.data_dir), code=1)
    assert stderr.startswith("barnabas server stop: no server to stop on ")
    broker.start()  # which takes the file over once its owner is gone
    assert broker.stop() == 0


def test_a_second_start_leaves_the_first_ones_file(tmp_path: Path) -> None:
    with broker_process(tmp_path) as broker:
        second = BrokerProcess(tmp_path)
        assert "is locked by another broker" in second.refuse()
        recorded = read_pid_file(broker.data_dir)
        assert broker.process is not None and recorded is not None
        assert recorded.pid == broker.process.pid
        assert broker.stop() == 0


def test_a_daemon_outlives_its_command(tmp_path: Path) -> None:
    """`-daemon`: the ready line, then the shell is free; it answers, and `server stop` ends it."""
    data, address = tmp_path / "data", f"127.0.0.1:{free_port()}"
    start = ("server", "start", "-daemon", "--data-dir", str(data), "--override")
    output, _ = run(*start, f"listeners=PLAINTEXT://{address}")
    found = re.fullmatch(
        rf"barnabas ready on {address} .*\nprocess (\d+), its log is {data}\.log\n", output
    )
    assert found is not None, output
    pid = int(found[1])
    try:
        assert os.getsid(pid) == pid  # the terminal's hang-up is not for it
        run("topics", "create", "test", "--bootstrap-server", address)
        for listeners in ("PLAINTEXT://127.0.0.1:0", f"PLAINTEXT://{address}"):
            _, stderr = run(*start, f"listeners={listeners}", code=1)
            assert f"{data} is locked by another broker, process {pid}; `barnabas " in stderr
        assert run("server", "stop", "--dir", str(data))[0] == f"Stopped server {pid} ({data}).\n"
    finally:
        if process_began_ticks(pid) is not None:
            os.kill(pid, signal.SIGKILL)
    assert "stopped cleanly" in (tmp_path / "data.log").read_text()
    assert not [path for path in data.iterdir() if path.suffix in (".log", ".out")]


def test_a_daemon_whose_directory_cannot_be_made(tmp_path: Path) -> None:
    """UX-4."""
    (tmp_path / "file").touch()
    _, stderr = run("server", "start", "-daemon", "--data-dir", f"{tmp_path}/file/data", code=1)
    assert stderr.count("\n") == 1 and "not a directory" in stderr


@pytest.mark.parametrize("words", [["--port", "0"], ["--pid", "x"], ["--timeout-ms", "-1"]])
def test_a_wrong_command_line_is_one_line_and_exit_2(words: list[str]) -> None:
    """UX-4."""
    _, stderr = run("server", "stop", *words, code=2)
    assert stderr.count("\n") == 1 and "--help" in stderr


def test_ux_3_variables_of_others_do_not_keep_a_broker_from_starting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a program's shell, or of a container beside a service called kafka."""
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", "kafka:9092")
    monkeypatch.setenv("KAFKA_PORT", "tcp://10.0.0.1:9092")
    monkeypatch.setenv("KAFKA_NUM_PARTITIONS", "3")
    with broker_process(tmp_path) as broker:
        with RemoteBroker(broker.bootstrap_servers) as remote:
            assert remote.topic("three").partitions == [0, 1, 2]
        lines = [line for line in broker.log.read_text().splitlines() if "KAFKA_" in line]
    assert len(lines) == 1
    assert "WARN" in lines[0] and "KAFKA_BOOTSTRAP_SERVERS, KAFKA_PORT in the env" in lines[0]
