"""MX-3, MX-4: `barnabas migrate` replaces the brokers of a real Kafka, under load, and goes back.

The commands are those of docs/coming-from-kafka.md, in their order. The test is the operator: it
stops and starts the brokers when a command asks for it.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import pytest

from barnabas.client import NewTopic, SyncAdmin
from tests.kit.clients import confluent_client
from tests.kit.clients.clients import Sent
from tests.kit.foreign import CHECKOUT
from tests.kit.processes.broker_process import COMMAND, BrokerProcess
from tests.kit.processes.cluster_load import (
    acknowledge_more,
    check_everything_is_there,
    check_replicas_are_equal,
)
from tests.kit.processes.mixed_cluster import Kind, MixedCluster, described, mixed_cluster
from tests.kit.processes.mixed_load import their_sender
from tests.kit.processes.senders import sending

pytestmark = [pytest.mark.slow, pytest.mark.foreign, pytest.mark.timeout(600)]

PAGE = CHECKOUT / "docs" / "coming-from-kafka.md"
SECTION = "## From Kafka to Barnabas without downtime, and back"
OPTIONS = ("min.insync.replicas=2", "auto.create.topics.enable=false", "num.io.threads=4")
SECONDS = 300
KINDS: dict[str, Kind] = {"kafka": "kafka", "barnabas": "ours"}
QUESTION_END = "then press Enter "

# Where a command is killed, and whether its question is then answered by the deed.
PHASES = (
    ("Stop broker", False),
    ("Stop broker", True),
    ("Start broker", False),
    ("Start broker", True),
    ("waiting: |verified ", False),  # which is first depends on how fast the broker is in sync
    ("verified ", False),
    ("broker . is elected", False),
)


@pytest.fixture
def mixed(tmp_path: Path) -> Iterator[MixedCluster]:
    with mixed_cluster(tmp_path, {1: "kafka", 2: "kafka", 3: "kafka"}, *OPTIONS) as cluster:
        yield cluster


def commands() -> list[list[str]]:
    """Those of the page's section, without the name of the program."""
    section = PAGE.read_text().partition(SECTION)[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("barnabas ")]
    return [shlex.split(line)[1:] for line in lines]


class Operator:
    """Runs the commands, and does what they ask for."""

    def __init__(self, mixed: MixedCluster, directory: Path) -> None:
        self._mixed, self._directory = mixed, directory

    def run(self, *words: str, code: int = 0) -> str:
        with self._started(*words) as process:
            assert process.stdout is not None and process.stdin is not None
            said = ""
            while question := _up_to_question(process.stdout):
                said += question
                if question.endswith(QUESTION_END):
                    self._obey(question)
                    process.stdin.write("\n")
                    process.stdin.flush()
            assert process.wait(SECONDS) == code, said
        return said

    def kill_at(self, phase: str, *words: str, obeys: bool) -> None:
        """Kill the command when it says this. If `obeys`, then do what it asked for."""
        said = ""
        with self._started(*words) as process:
            assert process.stdout is not None
            while line := _up_to_question(process.stdout):
                said += line
                if re.match(phase, line):
                    break
            assert line, said
            process.kill()
        if obeys:
            self._obey(line)

    def is_refused(self, *words: str, directory: Path | None = None) -> str:
        """Run a command that fails although nobody answers."""
        done = subprocess.run(
            [str(COMMAND), *words],
            cwd=directory or self._directory,
            env={**os.environ, "BARNABAS_BOOTSTRAP_SERVER": self._mixed.bootstrap_servers},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        assert done.returncode == 1, done
        return done.stderr

    def refuse_another(self, *words: str) -> str:
        """Return what a second command says while the first one asks for something."""
        with self._started(*words) as process:
            assert process.stdout is not None
            while not _up_to_question(process.stdout).endswith(QUESTION_END):
                pass
            said = self.is_refused(*words)
            process.send_signal(signal.SIGINT)
            assert process.wait(SECONDS) == 130, "Ctrl-C ends it, although nobody answers"
        return said

    @contextmanager
    def _started(self, *words: str) -> Iterator[subprocess.Popen[str]]:
        servers = self._mixed.bootstrap_servers
        process = subprocess.Popen(
            [str(COMMAND), *words],
            cwd=self._directory,
            env={**os.environ, "BARNABAS_BOOTSTRAP_SERVER": servers},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        with process:
            try:
                yield process
            finally:
                if process.poll() is None:
                    process.kill()

    def _obey(self, question: str) -> None:
        words = question.split()
        broker_id = int(words[words.index("broker") + 1])
        if words[0] == "Stop":
            self._mixed.stop_one(broker_id)
        else:
            kind = KINDS[words[words.index("as") + 1]]
            self._mixed.start_one(broker_id, kind)


def _up_to_question(output: IO[str]) -> str:
    """A line, or a question, which has no end of line."""
    text = ""
    while not text.endswith(("\n", QUESTION_END)) and (letter := output.read(1)):
        text += letter
    return text


def kinds(operator: Operator) -> list[str]:
    status = json.loads(operator.run("migrate", "status", "--json"))
    return [each["kind"] for each in status["brokers"]]


@pytest.fixture
def pid_file(tmp_path: Path) -> Iterator[Path]:
    """Where a start command writes its broker's process id; what runs at the end is killed."""
    path = tmp_path / "started.pid"
    yield path
    if path.exists():
        with suppress(ProcessLookupError):
            os.kill(int(path.read_text()), signal.SIGKILL)


def shell_start(broker: BrokerProcess, pid_file: Path) -> str:
    """A command that starts this broker in the background, and returns."""
    listeners = f"listeners=PLAINTEXT://127.0.0.1:{broker.port}"
    words = [str(COMMAND), "server", "start", "--data-dir", str(broker.data_dir)]
    for option in (listeners, *broker.options):
        words += ["--override", option]
    log = shlex.quote(str(broker.log))
    return f"{shlex.join(words)} >{log} 2>&1 </dev/null & echo $! >{shlex.quote(str(pid_file))}"


def fail_to_start(operator: Operator, mixed: MixedCluster, step: list[str]) -> int:
    """Stop the next broker of Kafka's, whose successor does not start; returns its id."""
    (broker_id,) = mixed.of_kind("kafka")
    stops = f"kill {mixed.pid_of(broker_id)}"
    failed = operator.run(*step, "--stop-command", stops, "--start-command", "exit 4", code=1)
    assert "`exit 4` failed with exit code 4" in failed
    return broker_id


def test_the_commands_of_the_page_replace_kafka_and_bring_it_back(
    mixed: MixedCluster, tmp_path: Path, pid_file: Path
) -> None:
    """MX-3, MX-4: under an idempotent producer; the second step is killed and repeated."""
    check, plan, status, dry, step, back = commands()
    operator = Operator(mixed, tmp_path)
    with SyncAdmin(mixed.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("kept", assignment={0: [1, 2, 3], 1: [2, 3, 1]})])
        described(admin, "kept")
    records = [Sent(n % 2, b"key", b"%d" % n) for n in range(2_000)]
    confluent_client.produce(mixed.bootstrap_servers, "kept", records)
    check[-1] = str(mixed.ours.brokers[1].data_dir)
    found = operator.run(*check)
    assert "num.io.threads has no effect" in found
    assert "nothing in the way" in found
    planned = operator.run(*plan)
    assert planned.splitlines()[0].startswith("1. broker ")
    assert "the controller" in planned.splitlines()[-1]
    assert operator.run(*status).count("Kind: kafka") == 3
    with sending(their_sender, mixed.bootstrap_servers, 3) as sender:
        acknowledge_more([sender])
        assert "nothing was done" in operator.run(*dry)
        assert kinds(operator) == ["kafka"] * 3
        said = operator.run(*step)
        assert "equal the leader's" in said
        assert kinds(operator).count("barnabas") == 1
        operator.kill_at("Stop broker", *step, obeys=True)
        acknowledge_more([sender])
        operator.run(*step)
        third = fail_to_start(operator, mixed, step)
        assert f"broker {third} is kafka" in operator.run(*back)
        assert kinds(operator).count("kafka") == 1
        acknowledge_more([sender])
        starts = shell_start(mixed.ours.brokers[third], pid_file)
        stops = f"kill {mixed.pid_of(third)} # {{broker}}"
        last = operator.run(*step, "--stop-command", stops, "--start-command", starts)
        assert "press Enter" not in last
        assert "every broker is barnabas" in last
        assert "nothing to replace" in operator.run(*dry)
        acknowledge_more([sender])
        back += ["--broker", str(third)]
        failed = operator.run(*back, "--stop-command", "exit 3 # {broker}", code=1)
        assert f"`exit 3 # {third}` failed with exit code 3" in failed
        stops = f"kill $(cat {pid_file})"
        assert f"broker {third} is kafka" in operator.run(*back, "--stop-command", stops)
        pid_file.unlink()
        assert kinds(operator).count("kafka") == 1
        acknowledge_more([sender])
        sender.stop()
    check_everything_is_there(sender, mixed.bootstrap_servers)
    check_replicas_are_equal(mixed.ours, sender)
    with SyncAdmin(mixed.bootstrap_servers) as admin:
        orders = [each.replicas for each in described(admin, "kept").partitions]
    assert orders == [(1, 2, 3), (2, 3, 1)], "the preferred leaders are those of before"
    print(f"{sender.acknowledged_count()} records are there")


def test_a_command_that_is_killed_in_any_phase_is_repeated(
    mixed: MixedCluster, tmp_path: Path
) -> None:
    """MX-3: `step` and `back`, each killed in every phase; nothing is lost."""
    *_, step, back = commands()
    operator = Operator(mixed, tmp_path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with SyncAdmin(mixed.bootstrap_servers) as admin:
        admin.create_topics(
            [NewTopic("kept", assignment={0: [1, 2, 3], 1: [2, 3, 1], 2: [3, 1, 2]})]
        )
        described(admin, "kept")
    with sending(their_sender, mixed.bootstrap_servers, 3) as sender:
        acknowledge_more([sender])
        assert "the question cannot be answered" in operator.is_refused(*step)
        assert "in use by another" in operator.refuse_another(*step)
        for command, kind in ((step, "barnabas"), (back, "kafka")):
            for phase, obeys in PHASES:
                operator.kill_at(phase, *command, obeys=obeys)
                acknowledge_more([sender])
            said = operator.run(*command)
            assert "continuing with broker" in said
            assert f"is {kind}" in said.splitlines()[-1]
            assert kinds(operator).count("kafka") == (3 if kind == "kafka" else 2)
            if kind == "barnabas":
                refused = operator.is_refused(*step, directory=elsewhere)
                assert "but there is no progress in" in refused
        sender.stop()
    check_everything_is_there(sender, mixed.bootstrap_servers)
    check_replicas_are_equal(mixed.ours, sender)
    print(f"{sender.acknowledged_count()} records are there")
