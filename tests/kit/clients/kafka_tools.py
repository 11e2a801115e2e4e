"""Kafka's own command-line tools, of 3.9.1: each runs as its shell script starts it.

That is a Java, the class that the script names, and the user's words.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.kit import foreign
from tests.kit.clients.java_client import FRUGAL
from tests.kit.pipeline.class_archive import QUIET
from tests.kit.secured.suite import IS_SECURED, java_file

TOOLS = {
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-console-producer": "kafka.tools.ConsoleProducer",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-acls": "kafka.admin.AclCommand",
    "kafka-delegation-tokens": "org.apache.kafka.tools.DelegationTokenCommand",
    "zookeeper-security-migration": "kafka.admin.ZkSecurityMigrator",
    "kafka-get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "kafka-log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "kafka-broker-api-versions": "kafka.admin.BrokerApiVersionsCommand",
    "kafka-producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
    "kafka-cluster": "org.apache.kafka.tools.ClusterTool",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-transactions": "org.apache.kafka.tools.TransactionsCommand",
    "kafka-delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "kafka-leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "kafka-reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
}
RUN_SECONDS = 300
# Under which option each takes the settings of a client; the others: --command-config.
CONFIG_OPTIONS = {
    "kafka-console-producer": "--producer.config",
    "kafka-console-consumer": "--consumer.config",
    "kafka-producer-perf-test": "--producer.config",
    "kafka-cluster": "--config",
    "kafka-leader-election": "--admin.config",
}
# By itself it gives up after five seconds, and says nothing of what it was asked for.
PATIENCE = {"kafka-consumer-groups": ("--timeout", "120000")}

_ARCHIVE = "tools.jsa"

LOGGING = """\
log4j.rootLogger=WARN, stderr
log4j.appender.stderr=org.apache.log4j.ConsoleAppender
log4j.appender.stderr.target=System.err
log4j.appender.stderr.layout=org.apache.log4j.PatternLayout
"""


class Tools:
    """Runs tools against one broker."""

    def __init__(self, servers: str, directory: Path) -> None:
        self.servers = servers
        self._logging = directory / "log4j.properties"
        self._logging.write_text(LOGGING)

    def run(self, tool: str, *words: str, stdin: str = "", code: int = 0) -> str:
        """What it prints on standard output; it must end with this code."""
        done = self.try_run(tool, "--bootstrap-server", self.servers, *words, stdin=stdin)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    def try_run(self, tool: str, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        java, jars = foreign.require_java(), foreign.require_kafka_jars()
        start = [
            str(java),
            *FRUGAL,
            *mapped_classes(),
            f"-Dlog4j.configuration=file:{self._logging}",
        ]
        run = [*start, "-cp", f"{jars}/*", TOOLS[tool]]
        return subprocess.run(
            [*run, *_with_settings(tool, words), *PATIENCE.get(tool, ())],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=RUN_SECONDS,
        )


def mapped_classes() -> list[str]:
    """The JVM options that map the classes of Kafka from an archive, made once and kept.

    Loading and verifying classes is most of a tool's run: with the archive (class data sharing,
    JEP 350), a tool was measured to take 60 % of its CPU time, and a broker that starts and stops
    85 %. A JVM ignores any archive that does not fit it or the jars.
    """
    archive = foreign.cached(f"kafka-{foreign.KAFKA_VERSION}-classes", _archive_classes)
    return [f"-XX:SharedArchiveFile={archive / _ARCHIVE}", *QUIET]


def _archive_classes(directory: Path) -> None:
    import barnabas

    archive = f"-XX:ArchiveClassesAtExit={directory / _ARCHIVE}"
    start = [str(foreign.require_java()), *FRUGAL, archive, *QUIET]
    # Unlike most, this tool loads the Scala library, too.
    tool = ["-cp", f"{foreign.require_kafka_jars()}/*", TOOLS["kafka-configs"]]
    with barnabas.Broker() as broker:
        words = ["--describe", "--entity-type", "topics"]
        subprocess.run(
            [*start, *tool, "--bootstrap-server", broker.bootstrap_servers, *words],
            check=True,
            capture_output=True,
            text=True,
            timeout=RUN_SECONDS,
        )


def _with_settings(tool: str, words: Sequence[str]) -> list[str]:
    """With how it connects in the secured suites, unless it is given that."""
    option = CONFIG_OPTIONS.get(tool, "--command-config")
    if not IS_SECURED or option in words:
        return list(words)
    settings = [option, str(java_file())]
    # One takes them behind its verb, another before it; to the rest it is the same.
    return [*words, *settings] if tool == "kafka-cluster" else [*settings, *words]
