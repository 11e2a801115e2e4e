"""Runs the command-line tools of Kafka 2.3.1, in one JVM: those of the texts that we follow."""

from __future__ import annotations

import subprocess
from base64 import b64encode
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from tests.kit import foreign
from tests.kit.clients.java_client import FRUGAL
from tests.kit.clients.kafka_tools import LOGGING

SOURCE = Path(__file__).with_name("ToolCalls.java")
TOOLS = {
    "kafka-topics": "kafka.admin.TopicCommand",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-reassign-partitions": "kafka.admin.ReassignPartitionsCommand",
    "kafka-preferred-replica-election": "kafka.admin.PreferredReplicaLeaderElectionCommand",
    "kafka-console-producer": "kafka.tools.ConsoleProducer",
    "kafka-console-consumer": "kafka.tools.ConsoleConsumer",
    "kafka-dump-log": "kafka.tools.DumpLogSegments",
}
_START_S, _STOP_S = 300, 60


class Said(NamedTuple):
    """The result of one call."""

    code: int
    output: str
    errors: str


class OldTools:
    """Calls tools; a context, whose JVM ends with it."""

    def __init__(self, directory: Path) -> None:
        """Ends the test, with what to install, where there is no Kafka 2.3.1."""
        jars = foreign.require_kafka_2_3_jars()
        java = str(foreign.require_java())
        class_path = ":".join(map(str, sorted(jars.glob("*.jar"))))
        compile_it = [java, *FRUGAL, "-jar", str(foreign.require_java_compiler()), "-nowarn"]
        subprocess.run(
            [*compile_it, "--release", "17", "-cp", class_path, "-d", str(directory), str(SOURCE)],
            check=True,
            timeout=_START_S,
        )
        logging = directory / "log4j.properties"
        logging.write_text(LOGGING)
        self._process = subprocess.Popen(
            [
                *(java, *FRUGAL, f"-Dlog4j.configuration=file:{logging}"),
                *("-cp", f"{directory}:{jars}/*", SOURCE.stem),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(_STOP_S)
        finally:
            self._process.kill()
            self._process.wait()

    def call(self, tool: str, *words: str, stdin: str = "") -> Said:
        """Run one tool to its end."""
        assert self._process.stdin is not None and self._process.stdout is not None
        parts = (TOOLS[tool], b64encode(stdin.encode()).decode(), *words)
        self._process.stdin.write("\t".join(parts).encode() + b"\n")
        self._process.stdin.flush()
        numbers = self._process.stdout.readline().split()
        assert numbers, "the JVM has ended"
        code, output, errors = map(int, numbers)
        read = self._process.stdout.read
        return Said(code, read(output).decode(), read(errors).decode())

    def run(self, tool: str, *words: str, stdin: str = "") -> str:
        """Its standard output; it must end well."""
        said = self.call(tool, *words, stdin=stdin)
        assert said.code == 0, said.output + said.errors
        return said.output
