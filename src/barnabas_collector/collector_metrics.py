"""Reports a collector's counters to Prometheus and its readiness to probes.

The counters start at zero with each process. `lag_bytes` counts the unread bytes in the logs. Lines
that were read but not sent are waiting for the brokers.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Protocol

from barnabas.metrics import Family, Registry, Sample, counter, gauge
from barnabas.net.metrics_listener import MetricsListener
from barnabas.net.metrics_page import page

_PREFIX = "barnabas_collector_"
_MOST_ERROR_LETTERS = 200
STUCK_S = 10.0
"""A part is not ready if messages have waited this long and none has been delivered."""


class Logs(Protocol):
    """Reports on the watched logs."""

    def __len__(self) -> int: ...

    @property
    def open_files(self) -> int: ...

    @property
    def lag_bytes(self) -> int: ...

    def left_out(self) -> dict[str, int]:
        """Count the files that are not sent, grouped by reason."""
        ...


class CollectorMetrics:
    """Holds the counters of a collector. Its parts increment them, and `serve` publishes them."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self.registry = Registry()
        self.logs: Logs | None = None  # counters of the current connection
        count = self.registry.counter
        self.lines_read = count(f"{_PREFIX}lines_read_total", "Records read from all sources")
        self.bytes_read = count(f"{_PREFIX}bytes_read_total", "Bytes of the records read")
        self.lines_sent = count(
            f"{_PREFIX}lines_sent_total", "Records committed, or acknowledged by the brokers"
        )
        self.bytes_sent = count(f"{_PREFIX}bytes_sent_total", "Bytes of the records sent")
        self.lines_cut = count(f"{_PREFIX}lines_cut_total", "Records sent that were too long")
        self.lost = {
            "refused": count(f"{_PREFIX}refused_total", "Messages that the brokers rejected"),
            "dropped": count(
                f"{_PREFIX}dropped_total", "Messages dropped because the buffer was full"
            ),
        }
        self.transactions = count(f"{_PREFIX}transactions_total", "Transactions committed")
        self.retries = count(f"{_PREFIX}retries_total", "Retries of sending")
        self.otlp_requests = count(f"{_PREFIX}otlp_requests_total", "OTLP requests received")
        self.otlp_records = count(
            f"{_PREFIX}otlp_log_records_total",
            "Log records whose storage was confirmed to OTLP senders",
        )
        self.otlp_refused: Counter[str] = Counter()  # requests, by reason
        self.handshakes_failed = count(
            f"{_PREFIX}tls_handshakes_failed_total", "Failed TLS handshakes"
        )
        self._starting: dict[str, str] = {}  # by part: the reason why it is not sending
        self._pending: dict[str, float] = {}  # by part: when messages began to wait
        self._error: tuple[str, float] | None = None
        self.registry.declare(self._families)

    def on_read(self, lines: int, size_bytes: int) -> None:
        self.lines_read.increment(lines)
        self.bytes_read.increment(size_bytes)

    def on_sent(self, lines: int, size_bytes: int, cut: int) -> None:
        self.lines_sent.increment(lines)
        self.bytes_sent.increment(size_bytes)
        self.lines_cut.increment(cut)

    def on_waiting(self, part: str, why: str) -> None:
        """Record that a part has stopped sending, and the reason."""
        self._starting[part] = why

    def on_ready(self, part: str) -> None:
        """Record that the brokers accept messages from a part, and that it has no waiting
        messages.
        """
        self._starting.pop(part, None)
        self._pending.pop(part, None)

    def on_pending(self, part: str) -> None:
        """Record that messages are waiting to be sent, until `on_ready` is called."""
        self._pending.setdefault(part, self._now_s())

    def on_retry(self, part: str, error: Exception) -> None:
        """Record that a part is retrying after an error."""
        self.retries.increment()
        self._error = str(error)[:_MOST_ERROR_LETTERS], time.time()
        self.on_waiting(part, str(error))

    def unready(self) -> str:
        """Return why the collector is not ready, or "" if it is ready."""
        found = dict(self._starting)
        now_s = self._now_s()
        for part, since_s in self._pending.items():
            if now_s - since_s >= STUCK_S:
                found.setdefault(part, f"has delivered nothing for {now_s - since_s:.0f} s")
        return "; ".join(f"{part}: {why}" for part, why in found.items())

    async def serve(self, port: int) -> MetricsListener:
        """Serve metrics and probes on this machine only. Raises `ConfigError`."""
        listener = MetricsListener(partial(page, self.registry), self.unready)
        await listener.bind("127.0.0.1", port, "--metrics-port")
        await listener.start()
        return listener

    def _families(self) -> Iterable[Family]:
        ready = Sample(0 if self.unready() else 1)
        yield _gauge("ready", "1 if the brokers accept records, 0 if not", [ready])
        if self.otlp_refused:
            refused = [
                Sample(count, (("reason", why),)) for why, count in self.otlp_refused.items()
            ]
            yield counter(
                f"{_PREFIX}otlp_refused_total", "OTLP requests that were refused", refused
            )
        if self._error is not None:
            text, at_s = self._error
            error = Sample(at_s, (("error", text),))
            yield _gauge(
                "last_error_timestamp_seconds",
                "Time of the last failure to send, and its cause",
                [error],
            )
        if (logs := self.logs) is None:
            return
        yield _gauge("files", "Watched logs", [Sample(len(logs))])
        yield _gauge("files_open", "Open files", [Sample(logs.open_files)])
        yield _gauge(
            "lag_bytes", "Bytes of the logs that have not been read yet", [Sample(logs.lag_bytes)]
        )
        left = [Sample(count, (("reason", why),)) for why, count in logs.left_out().items()]
        yield _gauge("files_left_out", "Files that are not sent", left)


def _gauge(name: str, sentence: str, samples: Sequence[Sample]) -> Family:
    return gauge(f"{_PREFIX}{name}", sentence, samples)
