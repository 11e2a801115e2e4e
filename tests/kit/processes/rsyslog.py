"""rsyslog as a shipper of log files to Kafka, with the settings that lose the least: its modules
imfile and omkafka.

It runs as a plain process with its own configuration, pid file and work directory: no system
service is needed. Debian has it in the packages rsyslog and rsyslog-kafka.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from tests.kit.foreign import require_rsyslog

_CONFIG = """\
global(workDirectory="{state}")
main_queue(
  queue.type="LinkedList" queue.size="200000" queue.dequeueBatchSize="4096"
  queue.filename="waiting" queue.saveOnShutdown="on"
)
module(load="imfile" mode="inotify")
module(load="omkafka")
template(name="line" type="string" string="%msg%")
input(
  type="imfile" File="{logs}" Tag="log" freshStartTail="off" reopenOnTruncate="on"
  persistStateInterval="{lines_between_states}"
)
action(
  type="omkafka" broker="{servers}" topic="{topic}" template="line"
  partitions.number="1" resubmitOnFailure="on" keepFailedMessages="on"
  failedMsgFile="{state}/failed" action.resumeRetryCount="-1"
  action.resumeInterval="1" action.resumeIntervalMax="1"
  confParam=["compression.codec=lz4", "linger.ms=5", "queue.buffering.max.messages=1000000"]
)
"""


class Shipping(NamedTuple):
    """Follows logs into a topic, from their beginnings, and goes on after a restart."""

    directory: Path  # of its configuration and its pid file
    logs: Path  # or a pattern
    servers: str
    topic: str
    state: Path  # the directory of its positions and of lines that wait
    lines_between_states: int = 0  # 0: it saves its positions when it is stopped

    def command(self) -> list[str]:
        config = self.directory / "rsyslog.conf"
        config.write_text(_CONFIG.format(**self._asdict()))
        # It refuses to start while the pid file of a killed one is there.
        pid = self.directory / "rsyslog.pid"
        pid.unlink(missing_ok=True)
        return [str(require_rsyslog()), "-n", "-f", str(config), "-i", str(pid)]
