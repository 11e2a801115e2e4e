"""rsyslog as a shipper of a log file to Kafka: its modules imfile and omkafka, and its settings.

Debian has it in the packages rsyslog and rsyslog-kafka.
"""

from __future__ import annotations

import shutil
from pathlib import Path

_CONFIG = """\
global(workDirectory="{directory}")
main_queue(queue.type="LinkedList" queue.size="200000" queue.dequeueBatchSize="4096")
module(load="imfile" mode="inotify")
module(load="omkafka")
template(name="line" type="string" string="%msg%")
input(type="imfile" File="{log}" Tag="log" freshStartTail="off")
action(
  type="omkafka" broker="{servers}" topic="{topic}" template="line"
  partitions.number="1" resubmitOnFailure="on"
  confParam=["compression.codec=lz4", "linger.ms=5", "queue.buffering.max.messages=1000000"]
)
"""


def is_there() -> bool:
    return any(Path("/usr/lib").glob("*/rsyslog/omkafka.so")) and _program() is not None


def command(directory: Path, log: Path, servers: str, topic: str) -> list[str]:
    """What follows the log into the topic, from its beginning; it keeps its state in the
    directory."""
    directory.mkdir()
    config = directory / "rsyslog.conf"
    config.write_text(_CONFIG.format(directory=directory, log=log, servers=servers, topic=topic))
    return [str(_program()), "-n", "-f", str(config), "-i", str(directory / "pid")]


def _program() -> str | None:
    return shutil.which("rsyslogd") or shutil.which("/usr/sbin/rsyslogd")
