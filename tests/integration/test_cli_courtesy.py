"""UX-4: commands beside others in a pipe, mistyped names, and what a command waits for."""

from __future__ import annotations

import os
import pty
import subprocess
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

import barnabas as package
from barnabas.client.admin.admin import NewTopic
from barnabas.client.sync.producer import SyncAdmin
from tests.kit.processes.command_line import COMMAND, InProcess, Shell

if TYPE_CHECKING:
    from barnabas.testing.embedded.broker import Broker


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with package.Broker(config={"group.initial.rebalance.delay.ms": "3000"}) as running:
        with SyncAdmin(running.bootstrap_servers) as admin:
            admin.create_topics([NewTopic("orders", 1), NewTopic("order-lines", 1)])
        yield running


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    "line", ["", "--help", "--version", "server start --help", "dump --help", "topics list"]
)
def test_a_reader_that_has_gone_is_no_error(broker: Broker, line: str, unbuffered: str) -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    environment = os.environ | {
        "PYTHONUNBUFFERED": unbuffered,
        "BARNABAS_BOOTSTRAP_SERVER": broker.bootstrap_servers,
    }
    try:
        done = subprocess.run(
            [COMMAND, *line.split()],
            stdout=theirs,
            stderr=subprocess.PIPE,
            env=environment,
            timeout=60,
        )
    finally:
        os.close(theirs)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(
    ("line", "code", "suggested"),
    [
        ("topic list", 2, "did you mean topics? See barnabas --help"),
        ("topics lst", 2, "did you mean list? See barnabas topics --help"),
        ("topics frobnicate", 2, "; see barnabas topics --help"),
        ("topics describe ordes", 1, "did you mean orders"),
        ("consume order-line --exit-at-end", 1, "did you mean order-lines"),
        ("topics delete nothing-like-it", 1, "`barnabas topics list` shows the topics"),
    ],
)
def test_what_a_mistyped_name_may_have_meant(
    barnabas: InProcess, line: str, code: int, suggested: str
) -> None:
    errors = barnabas(line, code=code)[1]
    assert suggested in errors and errors.count("\n") == 1


def test_a_command_that_waits_says_on_what(shell: Shell) -> None:
    """On a terminal, once, after two seconds; elsewhere it is silent."""
    ours, theirs = pty.openpty()
    consumer = shell.start("consume", "orders", stderr=theirs)
    os.close(theirs)
    try:
        said = b""
        while b"\n" not in said:
            said += os.read(ours, 1_000)
        assert said.startswith(b"waiting for group console-consumer-")
        assert b" to form (group.initial.rebalance.delay.ms); press Ctrl-C to stop" in said
    finally:
        consumer.kill()
        consumer.communicate()
        os.close(ours)
