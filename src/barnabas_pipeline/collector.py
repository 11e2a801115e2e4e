"""Sends the lines of a log to a topic unchanged, one record per line.

    key      the visitor's address, which is the line up to its first blank (at most 256 bytes)
    value    the line's bytes without the line feed, in any encoding
    headers  the line's place, as defined in `headers.py`

Lines are delivered at least once: after a crash, they are sent again from the last acknowledged
position. The lines of each file are sent in order by an idempotent producer that never gives up on
a batch. Within a partition, positions therefore only increase, unless lines are sent again. The
pipeline recognises duplicates by this order, so a line must always be sent to the same partition.
As in other producers, the partition is determined by the line's key, but only partitions that
existed when the first line of the file was sent are used. Partitions added to the topic later are
used from the next file on.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from barnabas.client.producer.batch import ProducerRecord
from barnabas.client.producer.delivery import Delivery
from barnabas.client.producer.murmur2 import partition_for_key
from barnabas.client.sync.producer import SyncProducer
from barnabas.errors import BarnabasError
from barnabas.records.record import Headers
from barnabas_collector.file_progress import FileProgress
from barnabas_collector.headers import CUT, FILE, FILE_ID, LINE, POSITION
from barnabas_collector.line_cutter import Line, size_and_cuts
from barnabas_collector.registry import Registry
from barnabas_collector.rotated_log import QUIET_S, Portion, RotatedLog

_KEY_BYTES = 256
_NEVER_MS = 2**31 - 1
_PATIENCE_S = 15.0
_POLL_S = 0.002


class NothingAcknowledged(BarnabasError):
    """The broker has stopped acknowledging lines. It is safe to send the lines again."""


class Collected(NamedTuple):
    """Counts the lines that a call has sent."""

    lines: int = 0
    size_bytes: int = 0
    cut_lines: int = 0  # lines truncated because of their length
    unfinished_bytes: int = 0  # of last lines left for the next run

    def plus(self, other: Collected) -> Collected:
        return Collected(*(a + b for a, b in zip(self, other, strict=True)))


class Collector:
    """Sends files to a topic, and stores the position reached in each file. Use it as a context
    manager.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        topic: str,
        registry: Registry,
        *,
        patience_s: float = _PATIENCE_S,
        client_options: Mapping[str, Any] | None = None,
    ) -> None:
        self._patience_s = patience_s
        self._topic = topic
        self._partition_counts: dict[str, int] = {}  # by file; checked in this run
        self.registry = registry
        self._producer = SyncProducer(
            bootstrap_servers,
            **(client_options or {}),
            acks="all",
            batch_size=262_144,
            linger_ms=5,
            # Never give up a batch, because later batches would skip its positions.
            delivery_timeout_ms=_NEVER_MS,
        )

    def __enter__(self) -> Collector:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # After a failure, some lines may never be acknowledged, and closing would wait for them.
        # The producer's thread ends with the process, and the next run sends these lines again.
        if kind is None:
            self._producer.close()

    def collect(self, path: Path) -> Collected:
        """Send all lines of the log that have not been sent yet.

        An unfinished last line is left for the next run, unless it is certain that no process is
        still writing it (see `rotated_log.py`). Raises `ConfigError` if the file cannot be read.
        """
        with RotatedLog(path, self.registry) as log:
            sent = self.send(log.portions(is_last_look=True))
            return sent._replace(unfinished_bytes=log.unfinished_bytes)

    def send(self, portions: Iterable[Portion]) -> Collected:
        """Send the portions in order, and store each position once the lines up to it are
        acknowledged.
        """
        total = Collected()
        for progress, lines, of_log in portions:
            partitions = self._partitions_of(progress.file_id) if lines else 1
            records = _records(self._topic, partitions, progress, lines, of_log)
            deliveries = self._producer.send_many(records)
            self._await(deliveries)
            self.registry.save(progress)
            total = total.plus(Collected(len(lines), *size_and_cuts(lines)))
        return total

    def _partitions_of(self, file_id: str) -> int:
        """Return the number of partitions to use for the file's lines. It is stored before the
        first line is sent."""
        known = self._partition_counts.get(file_id)
        if known is None:
            there_are = len(self._producer.partitions_for(self._topic))
            known = self.registry.partition_count(file_id)
            if known is None or known > there_are:  # the topic was recreated, with fewer partitions
                known = there_are
                self.registry.keep_partition_count(file_id, known)
            self._partition_counts[file_id] = known
        return known

    def _await(self, deliveries: list[Delivery]) -> None:
        """Wait until all lines are acknowledged.

        Raises `NothingAcknowledged` if no line is acknowledged for too long.
        """
        left = deliveries
        give_up_at = time.monotonic() + self._patience_s
        while left:
            time.sleep(_POLL_S)
            now = [delivery for delivery in left if not delivery.done()]
            # Any progress resets the time limit, because a slow cluster is not a dead one.
            if len(now) < len(left):
                give_up_at = time.monotonic() + self._patience_s
            elif time.monotonic() > give_up_at:
                raise NothingAcknowledged(
                    f"no line was acknowledged in {self._patience_s:.0f} s;"
                    f" {len(left):,} are waiting"
                )
            left = now
        for delivery in deliveries:
            # Raises the error if a line was refused.
            delivery.result()


class Follower:
    """Follows a log as it grows and is rotated, like `tail -F`, and sends its lines.

    Use it as a context manager.
    """

    def __init__(self, collector: Collector, path: Path, *, quiet_s: float = QUIET_S) -> None:
        """`quiet_s`: how long a rotated file must stay unchanged before it is closed.

        Raises `ConfigError` if the file cannot be read.
        """
        self._collector = collector
        self._log = RotatedLog(path, collector.registry, quiet_s=quiet_s)

    def poll(self) -> Collected:
        """Send the lines appended since the last call, if any."""
        return self._collector.send(self._log.portions())

    def __enter__(self) -> Follower:
        return self

    def __exit__(self, *_: object) -> None:
        self._log.close()


def _records(
    topic: str, partitions: int, progress: FileProgress, lines: Iterable[Line], of_log: Headers
) -> Iterator[ProducerRecord]:
    of_file = (
        (FILE, progress.path.encode("utf-8", "replace")),
        (FILE_ID, progress.file_id.encode()),
        *of_log,
    )
    for line in lines:
        place = ((POSITION, b"%d" % line.position), (LINE, b"%d" % line.number))
        cut = ((CUT, b"%d" % line.size_bytes),) if line.is_cut else ()
        address = line.text.split(b" ", 1)[0][:_KEY_BYTES]
        yield ProducerRecord(
            topic,
            line.text,
            address or None,
            _partition_for(address, partitions),
            headers=(*of_file, *place, *line.more, *cut),
        )


@lru_cache(8192)  # visitors return, and hashing an address takes microseconds
def _partition_for(address: bytes, partitions: int) -> int:
    return partition_for_key(address, partitions)
