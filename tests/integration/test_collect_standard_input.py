"""`some-program | barnabas collect -`: what users see, and what may happen to it."""

from __future__ import annotations

import array
import fcntl
import os
import select
import signal
import subprocess
import termios
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from barnabas.client import SyncAdmin
from barnabas.client.admin.configs import TOPIC, ConfigOperation, ConfigResource
from tests.integration.collect_processes import Collecting, collecting_in
from tests.kit.raw_client import PATIENCE_S
from tests.kit.waiting import wait_until

MOST_MB = 150
"""What the process takes at most, its inbox full, beside some 45 MB at the start."""


@pytest.fixture
def collecting(tmp_path: Path) -> Iterator[Collecting]:
    with collecting_in(tmp_path) as running:
        yield running


class Pipe:
    """Into the standard input of a collector."""

    def __init__(self, collecting: Collecting, *options: str) -> None:
        reading, self._writing = os.pipe()
        self.process = collecting.start("-", *options, stdin=reading)
        os.close(reading)

    def write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._writing, data) :]

    def filled(self, line: bytes) -> int:
        """Lines written until the pipe has taken none for a second."""
        os.set_blocking(self._writing, False)
        lines = 0
        while select.select([], [self._writing], [], 1.0)[1]:
            assert os.write(self._writing, line) == len(line)
            lines += 1
        os.set_blocking(self._writing, True)
        return lines

    def is_read(self) -> bool:
        waiting_bytes = array.array("i", [0])
        fcntl.ioctl(self._writing, termios.FIONREAD, waiting_bytes)
        return waiting_bytes[0] == 0

    def close(self) -> str:
        """What the collector says in the end."""
        os.close(self._writing)
        _, errors = self.process.communicate()
        return errors


def test_lines_are_there_as_they_come(collecting: Collecting) -> None:
    pipe = Pipe(collecting)
    pipe.write(b"one\n\ntwo\xff\x00")
    wait_until(lambda: collecting.values() == [b"one", b""])
    pipe.write(b" goes on\nwithout an end")
    wait_until(lambda: len(collecting.values()) == 3)
    errors = pipe.close()
    assert pipe.process.returncode == 0, errors
    assert errors.startswith("4 records (30 bytes) to lines in ")
    records = collecting.records()
    assert [record.value for record in records[2:]] == [b"two\xff\x00 goes on", b"without an end"]
    assert {record.key for record in records} == {b"test"}
    assert all([name for name, _ in record.headers] == ["host"] for record in records)


def test_a_file_that_a_shell_redirects(collecting: Collecting) -> None:
    log = collecting.logs / "app.log"
    log.write_bytes(b"x" * 300_000 + b"\n" + b"line\n" * 100_000)
    with log.open("rb") as file:
        process = collecting.start("-", stdin=file)
        _, errors = process.communicate()
    assert process.returncode == 0 and "; 1 were too long and were cut" in errors, errors
    long, *others = collecting.records()
    assert long.value == b"x" * 262_144 and dict(long.headers)["file.cut"] == b"300000"
    assert [record.value for record in others] == [b"line"] * 100_000


def test_a_record_waits_for_the_next_or_for_silence(collecting: Collecting) -> None:
    pipe = Pipe(collecting, "--record-start", "indented")
    pipe.write(b"ERROR one\n  at a\nINFO two\n")
    wait_until(lambda: collecting.values() == [b"ERROR one\n  at a", b"INFO two"])
    pipe.write(b"  of two lines\nINFO three\n  its end")
    assert "4 records" in pipe.close()
    assert collecting.values()[2:] == [b"  of two lines", b"INFO three\n  its end"]


def test_sigterm_sends_what_was_read_and_ends(collecting: Collecting) -> None:
    pipe = Pipe(collecting)
    pipe.write(b"one\nhalf")
    wait_until(lambda: collecting.values() == [b"one"])
    pipe.process.send_signal(signal.SIGTERM)
    _, errors = pipe.process.communicate()
    assert pipe.process.returncode == 0, errors
    assert collecting.values() == [b"one", b"half"]


def test_beside_files(collecting: Collecting) -> None:
    log = collecting.logs / "app.log"
    log.write_bytes(b"of a file\n")
    pipe = Pipe(collecting, str(log))
    pipe.write(b"of a pipe\n")
    wait_until(lambda: sorted(collecting.values()) == [b"of a file", b"of a pipe"])
    os.close(pipe._writing)
    with log.open("ab") as file:
        file.write(b"after its end\n")
    wait_until(lambda: len(collecting.values()) == 3)
    pipe.process.send_signal(signal.SIGTERM)
    _, errors = pipe.process.communicate()
    assert pipe.process.returncode == 0 and errors.startswith("3 records"), errors


def test_sp_2_while_the_broker_is_away_it_reads_no_further(collecting: Collecting) -> None:
    """Bounded memory: the pipe fills, and so its writer waits; then all goes on in order."""
    pipe = Pipe(collecting)
    pipe.write(b"first\n")
    wait_until(lambda: collecting.values() == [b"first"])
    collecting.broker.stop()
    line = b"%0.999d\n" % 0
    lines = pipe.filled(line)
    memory_mb = psutil.Process(pipe.process.pid).memory_info().rss / 1e6
    assert memory_mb < MOST_MB
    collecting.broker.start()
    wait_until(lambda: len(collecting.values()) == 1 + lines)
    pipe.write(b"last\n")
    assert pipe.close() and pipe.process.returncode == 0
    assert collecting.values() == [b"first", *[line[:-1]] * lines, b"last"]


def test_batches_that_a_topic_does_not_take(collecting: Collecting) -> None:
    """Smaller ones are, in their order; only a message that is too large by itself is lost."""
    with SyncAdmin(collecting.broker.bootstrap_servers) as admin:
        most = ConfigOperation("max.message.bytes", value="2000")
        admin.alter_configs(ConfigResource(TOPIC, "lines"), [most])
    lines = [b"%d %s" % (number, b"x" * number) for number in range(400)]
    log = collecting.logs / "app.log"  # of which one read has all, and the last line its own batch
    log.write_bytes(b"\n".join([*lines, b"y" * 150_000, b"last", b""]))
    with log.open("rb") as file:
        process = collecting.start("-", "--compression", "none", stdin=file)
        _, errors = process.communicate()
    assert process.returncode == 1 and "; 1 were refused and are lost" in errors, errors
    assert errors.splitlines()[-1].startswith("401 records")
    assert collecting.values() == [*lines, b"last"]


@pytest.mark.slow
def test_a_stop_without_a_broker_says_what_is_lost(collecting: Collecting) -> None:
    pipe = Pipe(collecting)
    pipe.write(b"first\n")
    wait_until(lambda: collecting.values() == [b"first"])
    collecting.broker.stop()
    pipe.write(b"one\ntwo\n")
    wait_until(pipe.is_read)
    pipe.process.send_signal(signal.SIGTERM)
    _, errors = pipe.process.communicate()
    assert pipe.process.returncode == 1
    assert "lost 2 messages after receipt" in errors.splitlines()[-1], errors


def test_what_cannot_be_is_one_clear_line_ux_4(collecting: Collecting) -> None:
    process = collecting.start("-", before=lambda: os.close(0))
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1
    assert errors.splitlines()[-1].endswith("cannot read standard input: it is closed")
    process = collecting.start(stdin=subprocess.DEVNULL)
    _, errors = process.communicate()
    assert process.returncode == 2 and "- for standard input" in errors
