"""UX-5: every line of the table of commands runs, in its order, against one broker.

`docs/commands.md` has Kafka's line in the first column and ours in the second; a row without a
command of ours says why. The broker is the one that the table itself starts.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.cli.server.pid_file import process_began_ticks, read_pid_file
from tests.kit.foreign import CHECKOUT
from tests.kit.processes.broker_process import free_port

PAGE = CHECKOUT / "docs" / "commands.md"
ROW = re.compile(r"^\| (.+?) \| (.+?) \|$", re.MULTILINE)
START, STOP = ["barnabas", "server", "start"], ["barnabas", "server", "stop"]
TIMEOUT_S = 180

INPUT = {"produce": b"one\ntwo\n", "produce :": b"k:three\n"}
OUTPUT = {
    "barnabas topics list": r"test\nusers\n",
    "barnabas topics describe --topic test": r"Topic: test\t(.*\n){2}",
    "barnabas topics describe --under-replicated-partitions": r"",
    "barnabas consume --topic test": r"",
    "barnabas consume --topic test --partition 0 --offset 0 --max-messages 1": r"(.+\n)?",
    "barnabas consume --topic test --group g1 --from-beginning --max-messages 1": r".+\n",
    "barnabas consume --include te.t --from-beginning --max-messages 1": r".+\n",
    "barnabas groups list --state Empty,Stable": r"GROUP +STATE +\n(.*\n)*g1 +Empty +\n",
    "barnabas groups describe --group g1": r"\nGROUP .* CLIENT-ID\n(g1 +test +[012] .*\n){3}",
    "barnabas groups describe --group g1 --events": r"(.* group g1: .*\n){2}",
    "barnabas events --kind topic-created": r"(.* topic-created .*\n +cause: .*\n +clients .*\n)+",
    "barnabas groups describe --group g1 --lag": r"\nGROUP .*\n(g1 +test .*\n){3}g1: .*\n",
    "barnabas groups watch g1 --once": r"\nGROUP .*\n(g1 +test .*\n){3}g1: .*\n",
    "barnabas groups reset-offsets --group g1 --topic test:0,1 --to-latest --execute": r"\nGROUP "
    r".*\n(g1 +test +[01] +\d+\n){2}",
    "barnabas groups delete --group g1": r"Deleted group g1\.\n",
    "barnabas transactions describe --transactional-id t1": r"CoordinatorId\t.*\n"
    r"0 +\tt1 .*\tCompleteCommit +\t.*\n",
    "barnabas records delete --topic speed --partition 0 --offset 500": r"partition: speed-0\t"
    r"low_watermark: 500\n",
    "barnabas offsets test:0,1 --time earliest": r"test:0:\d+\ntest:1:\d+\n",
    "barnabas cluster health": r"healthy: 1 broker, controller 0, .*\n",
    "barnabas metadata ls /brokers/ids --dir data": r"0\n",
    "barnabas dump --verify data/test-0": r"",
    "barnabas acls list --topic orders": r"User:eve\tDENY\tALL\t\*\tTOPIC\t\*\tLITERAL\n(.+\n){5}",
    "barnabas acls delete --topic orders --force": r"Deleted 5 rules:\n(  allow .*\n){5}",
    "barnabas acls delete --user alice": r"No matching rules\.\n",
    "barnabas configs describe --topic test": r"Dynamic configs for topic test are:\n"
    r"  retention\.ms=86400000 sensitive=false synonyms=\{.*\}\n",
}


def rows() -> Iterator[tuple[str, str]]:
    """Kafka's column and ours, without headings."""
    for kafka, ours in ROW.findall(PAGE.read_text(encoding="utf-8")):
        if kafka != "Kafka":
            yield kafka, ours


def commands() -> list[list[str]]:
    """The words of every line of ours."""
    return [shlex.split(ours.strip("`")) for _, ours in rows() if ours.startswith("`barnabas ")]


class Machine:
    """An empty directory with a `server.properties`, where the lines are typed."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.data = directory / "data"
        self._address = f"127.0.0.1:{free_port()}"
        (directory / "server.properties").write_text(
            f"broker.id=0\nlog.dirs={self.data}\nlisteners=PLAINTEXT://{self._address}\n"
            "group.initial.rebalance.delay.ms=0\n"  # as Kafka's sample file has it
            "authorizer.class.name=kafka.security.authorizer.AclAuthorizer\n"
            "super.users=User:ANONYMOUS\n"
        )
        self._environment = os.environ | {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "BARNABAS_BOOTSTRAP_SERVER": self._address,
        }

    def run(self, words: list[str]) -> str:
        """Standard output of a line that must succeed."""
        typed = list(words)
        if typed == STOP:
            typed += ["--dir", str(self.data)]  # other brokers may run on this machine
        if typed[1] == "consume":
            joins = "--group" in typed or "--include" in typed
            typed += ["--timeout-ms", "30000" if joins else "4000"]
        done = subprocess.run(
            typed,
            cwd=self._directory,
            env=self._environment,
            input=INPUT["produce :"] if ":" in typed else INPUT["produce"],
            capture_output=True,
            timeout=TIMEOUT_S,
        )
        stderr = done.stderr.decode()
        assert done.returncode == 0 and "Traceback" not in stderr, (words, stderr)
        return done.stdout.decode()

    def start(self, words: list[str]) -> None:
        """A broker in the foreground: it becomes ready, and Ctrl-C ends it in order."""
        process = subprocess.Popen(
            words,
            cwd=self._directory,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith(b"barnabas ready on ")
            process.send_signal(signal.SIGINT)
            assert process.wait(TIMEOUT_S) == 0
        finally:
            process.kill()
            process.communicate()


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    machine = Machine(tmp_path)
    yield machine
    left = read_pid_file(machine.data)
    if left is not None and process_began_ticks(left.pid) == left.began_ticks:
        os.kill(left.pid, signal.SIGKILL)


@pytest.mark.timeout(900)
def test_ux_5_every_line_of_the_table_runs(machine: Machine) -> None:
    lines = commands()
    for words in lines:
        if words[:3] == START and "-daemon" not in words:
            machine.start(words)
            continue
        printed = machine.run(words)
        expected = OUTPUT.get(shlex.join(words))
        assert expected is None or re.fullmatch(expected, printed), (words, printed)
    assert len(lines) > 60
    print(f"\n{len(lines)} command lines of docs/commands.md run")
    assert not (machine.data / "barnabas.pid").exists()


def test_ux_5_every_row_has_a_line_or_a_reason() -> None:
    """Which commands there are: all that the textbook has."""
    listed = {kafka.strip("`").split()[0]: ours for kafka, ours in rows()}
    assert {
        "kafka-server-start.sh",
        "kafka-server-stop.sh",
        "kafka-topics.sh",
        "kafka-console-producer.sh",
        "kafka-console-consumer.sh",
        "kafka-consumer-groups.sh",
        "kafka-transactions.sh",
        "kafka-configs.sh",
        "kafka-run-class.sh",
        "zookeeper-shell.sh",
    } <= set(listed)
    for _, ours in rows():
        assert ours.startswith("`barnabas ") or ours == "not yet" or "barnabas" in ours


def test_the_expected_lines_are_in_the_table() -> None:
    typed = {shlex.join(words) for words in commands()}
    assert set(OUTPUT) <= typed
