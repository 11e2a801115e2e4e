"""Starts, watches and stops the processes of a cluster on one machine.

Each process has its own session, so that a terminal's Ctrl-C reaches only the command. The command
stops the brokers one by one, because each hands over its leaderships, and then stops ZooKeeper. A
process that dies is not restarted, so that users can see how the cluster reacts.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from barnabas.cli.cluster import zookeeper as zookeeper
from barnabas.cli.cluster.layout import CannotRun, Plan
from barnabas.cli.server.daemon import LOG_FILE, log_file_of
from barnabas.cli.server.pid_file import (
    FILE_NAME,
    UNKNOWN_START,
    process_began_ticks,
    read_pid_file,
)

START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 30.0

_POLL_S = 0.05
_START_POLL_S = 0.01  # a start takes a few tenths of a second
_SERVER = (sys.executable, "-m", "barnabas.cli.main", "server", "start")
_TAIL_LINES = 5


class Interrupted(Exception):
    """Raised if the cluster was asked to stop before it was ready."""


class Started(NamedTuple):
    """Represents a process of the cluster."""

    name: str  # "broker 1", "zookeeper"
    process: subprocess.Popen[str]
    output: Path
    output_began_at: int  # where this process's output starts in the file


def launch_zookeeper(plan: Plan) -> Started:
    """Start ZooKeeper without waiting for it to be ready. Raises CannotRun."""
    words = zookeeper.command(plan, os.environ)
    started = _launch("zookeeper", words, plan.zookeeper_directory)
    _record(plan.zookeeper_directory, started.process.pid, plan.zookeeper_address)
    return started


def launch_broker(plan: Plan, broker_id: int) -> Started:
    """Start a broker without waiting for it to be ready."""
    directory = plan.broker_directory(broker_id)
    words = [*_SERVER, "--data-dir", str(directory)]
    if plan.is_secure:
        words += ["--secure-dir", str(plan.secure_directory)]
    for key, value in plan.configs(broker_id).items():
        words += ["--override", f"{key}={value}"]
    words += [LOG_FILE, str(log_file_of(directory))]
    return _launch(f"broker {broker_id}", words, directory)


def wait_for_zookeeper(plan: Plan, started: Started, wants_stop: Callable[[], bool]) -> None:
    """Wait until ZooKeeper responds. Raises CannotRun or Interrupted."""
    _wait(started, lambda: zookeeper.is_serving(plan), wants_stop)


def wait_for_broker(started: Started, wants_stop: Callable[[], bool]) -> None:
    """Wait until the broker prints that it is ready. Raises CannotRun or Interrupted."""
    stdout = started.process.stdout
    assert stdout is not None

    def is_ready() -> bool:
        # readline would block until the broker prints something, and a request to stop would go
        # unnoticed.
        readable, _, _ = select.select([stdout], [], [], 0)
        return bool(readable) and stdout.readline().startswith("barnabas ready on ")

    with stdout:
        _wait(started, is_ready, wants_stop)


def stop_process(name: str, directory: Path) -> bool:
    """Stop the process whose `barnabas.pid` is in the directory, and wait. A process that does not
    stop in time is killed. Returns whether one was running. Raises CannotRun.
    """
    recorded = read_pid_file(directory)
    if recorded is None or not recorded.is_alive:
        return False
    try:
        os.kill(recorded.pid, signal.SIGTERM)
        if not _gone_within(recorded.pid, recorded.began_ticks, STOP_TIMEOUT_S):
            sys.stderr.write(
                f"barnabas cluster: {name} did not stop within {STOP_TIMEOUT_S:.0f} s; "
                f"killing it; see {log_file_of(directory)}\n"
            )
            os.kill(recorded.pid, signal.SIGKILL)
            _gone_within(recorded.pid, recorded.began_ticks, STOP_TIMEOUT_S)
    except ProcessLookupError:
        return True  # the process had just ended on its own
    except PermissionError as error:
        raise CannotRun(f"{name}, process {recorded.pid}, belongs to another user") from error
    return True


def stop_all(plan: Plan) -> None:
    """Stop the brokers in reverse order, then ZooKeeper."""
    # Stop one broker at a time, so that each can hand its leaderships to the remaining brokers
    # (RE-13).
    for broker_id in sorted(plan.ports, reverse=True):
        stop_process(f"broker {broker_id}", plan.broker_directory(broker_id))
    if stop_process("zookeeper", plan.zookeeper_directory):
        (plan.zookeeper_directory / FILE_NAME).unlink(missing_ok=True)


def last_output(started: Started) -> str:
    """Return the last lines of a process's output, joined into one line."""
    with started.output.open(encoding="utf-8", errors="replace") as output:
        output.seek(started.output_began_at)
        lines = [line.strip() for line in output.read().splitlines() if line.strip()]
    return " | ".join(lines[-_TAIL_LINES:]) or "nothing"


def _launch(name: str, words: Sequence[str], directory: Path) -> Started:
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    output = log_file_of(directory)
    with output.open("ab") as file:
        began_at = file.tell()
        process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            # A broker's standard output consists of one line, "barnabas ready on ...", for which
            # this command waits.
            stdout=subprocess.PIPE if name != "zookeeper" else file,
            stderr=file,
            start_new_session=True,
            text=True,
        )
    return Started(name, process, output, began_at)


def _record(directory: Path, pid: int, address: str) -> None:
    """Write the pid file for ZooKeeper. Brokers write their own."""
    began_ticks = process_began_ticks(pid)
    ticks = UNKNOWN_START if began_ticks is None else began_ticks
    (directory / FILE_NAME).write_text(f"{pid}\n{ticks}\n{address}\n")


def _wait(started: Started, is_ready: Callable[[], bool], wants_stop: Callable[[], bool]) -> None:
    ends_at_s = time.monotonic() + START_TIMEOUT_S
    while not is_ready():
        code = started.process.poll()
        # The process ended during the wait. The last lines of its log explain why.
        if code is not None:
            raise CannotRun(f"{started.name} {ending(code)} while starting: {last_output(started)}")
        if wants_stop():
            raise Interrupted
        if time.monotonic() >= ends_at_s:
            raise CannotRun(
                f"{started.name} was not ready within {START_TIMEOUT_S:.0f} s, see {started.output}"
            )
        time.sleep(_START_POLL_S)


def _gone_within(pid: int, began_ticks: int, seconds: float) -> bool:
    ends_at_s = time.monotonic() + seconds
    while process_began_ticks(pid) == began_ticks:
        if time.monotonic() >= ends_at_s:
            return False
        time.sleep(_POLL_S)
    return True


def ending(code: int) -> str:
    """Describe how a process ended."""
    if code < 0:
        return f"was killed by signal {-code}"
    return "stopped" if code == 0 else f"ended with code {code}"
