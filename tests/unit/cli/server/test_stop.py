"""UX-5: which process `server stop` stops, and that it is none but a broker."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from barnabas.cli.server.pid_file import (
    FILE_NAME,
    PidFile,
    claim,
    process_began_ticks,
    read_pid_file,
    release,
)
from barnabas.cli.server.processes import ServerProcess, find_servers, is_server_command
from barnabas.cli.server.stop import (
    CannotStop,
    Selection,
    choose,
    default_selection,
    directory_of,
    stop,
)

SLEEPER = [sys.executable, "-c", "import sys; print(flush=True); sys.stdin.read()"]
STUBBORN = [
    sys.executable,
    "-c",
    "import signal, sys; signal.signal(15, signal.SIG_IGN); print(flush=True); sys.stdin.read()",
]


def started(command: list[str]) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    return process


def ended(process: subprocess.Popen[bytes]) -> int:
    process.kill()
    process.communicate()
    return process.returncode


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["/v/bin/python", "/v/bin/barnabas", "server", "start", "--port", "1"], True),
        (["python", "-m", "barnabas.cli.main", "server", "start"], True),
        (["barnabas", "server", "start"], True),
        (["barnabas", "server", "stop"], False),
        (["vi", "barnabas"], False),
        (["vi", "server", "start"], False),
        (["sh", "-c", "barnabas server start"], False),
        ([], False),
    ],
)
def test_what_is_a_broker(words: list[str], expected: bool) -> None:
    assert is_server_command(words) is expected


def test_the_process_table_is_read(tmp_path: Path) -> None:
    """Command line and locked directories; other processes, and what ends meanwhile, are left."""
    broker = tmp_path / "4711"
    (broker / "fd").mkdir(parents=True)
    (broker / "cmdline").write_bytes(b"python\0/bin/barnabas\0server\0start\0")
    (broker / "fd" / "7").symlink_to("/data/.lock")
    (broker / "fd" / "8").symlink_to("/data/test-0/0.log")
    (tmp_path / "12").mkdir()
    (tmp_path / "13").mkdir()
    (tmp_path / "13" / "cmdline").write_bytes(b"vi\0server\0start\0")
    (tmp_path / "self").mkdir()
    assert find_servers(tmp_path) == [
        ServerProcess(4711, "python /bin/barnabas server start", (Path("/data"),), os.getuid())
    ]


def test_one_of_several_is_chosen(tmp_path: Path) -> None:
    first = ServerProcess(4711, "a", (tmp_path / "a",))
    second = ServerProcess(4712, "b", (tmp_path / "b",))
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / FILE_NAME).write_text("4712\n5\nPLAINTEXT://:9192,SSL://[::1]:9193\n")
    both = [first, second]
    assert choose(Selection(), [first]) == first
    assert choose(Selection(pid=4712), both) == second
    assert choose(Selection(port=9193), both) == second
    assert choose(Selection(directory=tmp_path / "a"), both) == first
    with pytest.raises(
        CannotStop, match=r"several servers are running, 4711 \(.*\) and 4712 .*--dir"
    ):
        choose(Selection(), both)
    with pytest.raises(CannotStop, match=r"^no server to stop on port 9; there is 4711 "):
        choose(Selection(port=9), both)
    with pytest.raises(CannotStop, match=r"^no server to stop$"):
        choose(Selection(), [])


def test_without_options_only_this_users_broker_on_the_default_directory_is_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """UX-5: the only broker of a machine may be anybody's, with data that matters."""
    monkeypatch.setenv("KAFKA_LOG_DIRS", f"{tmp_path},/elsewhere")
    own = ServerProcess(4711, "a", (tmp_path,), os.getuid())
    elsewhere = ServerProcess(4712, "b", (tmp_path / "b",), os.getuid())
    of_another = ServerProcess(4713, "c", (tmp_path,), os.getuid() + 1)
    assert choose(default_selection(), [own, elsewhere]) == own
    for server in (elsewhere, of_another):
        with pytest.raises(
            CannotStop, match=rf"to stop on {tmp_path}; there is {server.pid} .*--d"
        ):
            choose(default_selection(), [server])
    monkeypatch.delenv("KAFKA_LOG_DIRS")
    assert default_selection().directory == Path("/tmp/kafka-logs")


def test_a_process_is_asked_and_awaited() -> None:
    process = started(SLEEPER)
    try:
        server = ServerProcess(process.pid, "", ())
        assert stop(Selection(), 120_000, lambda: [server]) == server
        assert process.wait(120) == -15
    finally:
        ended(process)


def test_waiting_has_an_end() -> None:
    process = started(STUBBORN)
    try:
        server = ServerProcess(process.pid, "", ())
        with pytest.raises(CannotStop, match="did not stop within 50 ms"):
            stop(Selection(), 50, lambda: [server])
    finally:
        assert ended(process) == -9


def test_one_that_is_gone_already_is_stopped() -> None:
    process = started(SLEEPER)
    ended(process)
    server = ServerProcess(process.pid, "", ())
    assert stop(Selection(), 0, lambda: [server]) == server


# ---- barnabas.pid ----


def test_the_file_says_who_runs_and_is_gone_afterwards(tmp_path: Path) -> None:
    directory = tmp_path / "new"
    assert claim(directory, "PLAINTEXT://:9092")
    found = read_pid_file(directory)
    assert found is not None and found.is_alive
    assert (found.pid, found.listeners) == (os.getpid(), "PLAINTEXT://:9092")
    release(directory)
    assert list(directory.iterdir()) == []


def test_a_live_owner_is_left_alone_and_a_stale_one_replaced(tmp_path: Path) -> None:
    process = started(SLEEPER)
    try:
        began_ticks = process_began_ticks(process.pid)
        (tmp_path / FILE_NAME).write_text(f"{process.pid}\n{began_ticks}\nPLAINTEXT://:1\n")
        assert not claim(tmp_path, "PLAINTEXT://:2")
        release(tmp_path)
        assert read_pid_file(tmp_path) == PidFile(process.pid, began_ticks or 0, "PLAINTEXT://:1")
        # The same number, but another process: ids are used again.
        (tmp_path / FILE_NAME).write_text(f"{process.pid}\n1\nPLAINTEXT://:1\n")
        assert claim(tmp_path, "PLAINTEXT://:2")
        release(tmp_path)
    finally:
        ended(process)
    assert process_began_ticks(process.pid) is None


@pytest.mark.parametrize("content", [b"", b"x\n", b"1\n2", b"\xff" * 5000, b"1\nx\ny\n"])
def test_what_is_no_pid_file_is_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE_NAME).write_bytes(content)
    assert read_pid_file(tmp_path) is None


def test_a_directory_that_cannot_be_written_is_the_brokers_to_complain_of(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert not claim(tmp_path / "file", "")


@pytest.mark.parametrize(
    ("text", "directory"),
    [
        ("log.dirs=/a , /b", "/a"),
        ("log.dir=/c", "/c"),
        ("log.dirs=/a\nlog.dir=/c", "/a"),
        ("broker.id=1", "/tmp/kafka-logs"),
    ],
)
def test_a_properties_file_names_the_directory(tmp_path: Path, text: str, directory: str) -> None:
    """UX-5: kafka-server-stop.sh takes a file, too, and does not look at it."""
    file = tmp_path / "server.properties"
    file.write_text(text)
    assert directory_of(str(file)) == Path(directory)


def test_a_properties_file_that_is_not_there_names_none(tmp_path: Path) -> None:
    assert directory_of(str(tmp_path / "server.properties")) is None
    with pytest.raises(CannotStop, match="directory"):
        directory_of(str(tmp_path))
