"""UX-5, ZS-3: Kafka's and ZooKeeper's scripts start and stop our ZooKeeper server, or Java's.

Java's is the one of Debian's package. It runs where it has already kept its tree.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from barnabas.cli.kafka.zookeeper_process import processes, server_of
from tests.kit import foreign
from tests.kit.processes.broker_process import free_port
from tests.kit.processes.command_line import COMMAND
from tests.kit.waiting import wait_until

pytestmark = [pytest.mark.foreign, pytest.mark.slow]

TIMEOUT_S = 180


def require_javas(data: Path) -> None:
    foreign.require_java()
    if not Path("/usr/share/java/zookeeper.jar").exists():
        foreign.missing("no ZooKeeper of Debian's", "apt-get install zookeeper")
    (data / "version-2").mkdir(mode=0o700, parents=True)


@pytest.fixture(params=["ours", "java"])
def config(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if request.param == "java":
        require_javas(tmp_path / "tree")
    path = tmp_path / "zookeeper.properties"
    path.write_text(
        f"dataDir={tmp_path / 'tree'}\nclientPort={free_port()}\nclientPortAddress=127.0.0.1\n"
        "admin.enableServer=false\n"
    )
    return path


def typed(*words: str, code: int = 0) -> tuple[str, str]:
    done = subprocess.run([COMMAND, *words], capture_output=True, text=True, timeout=TIMEOUT_S)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout, done.stderr


def test_ux_5_zk_server_starts_restarts_and_stops_it(config: Path) -> None:
    file = str(config)
    assert typed("zkServer.sh", "start", file)[0] == "Starting zookeeper ... STARTED\n"
    try:
        assert typed("zkServer.sh", "status", file)[0].endswith("\nMode: standalone\n")
        assert "already running, as process" in typed("zkServer.sh", "start", file, code=1)[1]
        other = config.with_name("other.properties")
        other.write_text(config.read_text().replace("/tree", "/elsewhere"))
        assert (
            "another ZooKeeper listens on" in typed("zkServer.sh", "start", str(other), code=1)[1]
        )
        assert typed("zkServer.sh", "restart", file)[0] == (
            "Stopping zookeeper ... STOPPED\nStarting zookeeper ... STARTED\n"
        )
    finally:
        assert typed("zkServer.sh", "stop", file)[0] == "Stopping zookeeper ... STOPPED\n"
    assert "no zookeeper to stop" in typed("zkServer.sh", "stop", file, code=1)[0]


def test_ux_5_kafkas_scripts_run_it_in_front_and_in_the_background(config: Path) -> None:
    server = server_of(config)
    words = [COMMAND, "zookeeper-server-start.sh", str(config)]
    in_front = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: server.mode() == "standalone")
        assert typed("zookeeper-server-stop.sh", str(config)) == ("", "")
        in_front.wait(TIMEOUT_S)  # SIGTERM ends Java with a code that is not 0
    finally:
        in_front.kill()
        in_front.wait()
    said, _ = typed("zookeeper-server-start.sh", "-daemon", str(config))
    started = re.match(rf"ZooKeeper listens on {server.address}\nprocess (\d+),", said)
    assert started is not None and int(started[1]) in list(processes())
    assert typed("zookeeper-server-stop.sh", str(config)) == ("", "")
    stopped, _ = typed("zookeeper-server-stop.sh", str(config), code=1)
    assert stopped == "No zookeeper server to stop\n"


def test_ux_4_what_the_server_says_of_a_wrong_file_is_passed_on(config: Path) -> None:
    config.write_text(config.read_text() + "tickTime=soon\n")
    _, errors = typed("zkServer.sh", "start", str(config), code=1)
    assert "ZooKeeper exited: " in errors


def test_zs_3_an_ensemble_needs_javas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    path = tmp_path / "zoo.cfg"
    path.write_text(f"dataDir={tmp_path / 'tree'}\nserver.1=a:2888:3888\nserver.2=b:2888:3888\n")
    _, errors = typed("zkServer.sh", "start", str(path), code=1)
    assert f"{path} sets server.1, which only Java's ZooKeeper supports" in errors


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ("tickTime=soon", "{file}: tickTime: 'soon' is not a number"),
        ("dataDir={file}", "{file}: not a directory; correct dataDir or --data-dir"),
        ("dataDir={file}/tree", "{file}/tree: not a directory; correct dataDir or --data-dir"),
        (
            "clientPortAddress=192.0.2.1",
            "192.0.2.1 is not an address of this machine: correct clientPortAddress or --host",
        ),
    ],
)
def test_ux_4_a_start_that_fails_says_where_and_what_to_do(
    tmp_path: Path, lines: str, reason: str
) -> None:
    file = tmp_path / "zoo.cfg"
    file.write_text(f"dataDir={tmp_path}/tree\nclientPort=0\n{lines.format(file=file)}\n")
    command = [str(COMMAND), "zookeeper", "start", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert reason.format(file=file) in done.stderr and "Errno" not in done.stderr
    assert done.stderr.count("\n") == 1
