"""What a producer has done, in numbers; counted per batch and request, not per record."""

from __future__ import annotations


class Statistics:
    __slots__ = (
        "acknowledged_batches",
        "acknowledged_bytes",
        "acknowledged_records",
        "failed_records",
        "longest_request_ms",
        "request_ms",
        "requests",
        "retries",
    )

    def __init__(self) -> None:
        self.acknowledged_batches = 0
        self.acknowledged_bytes = 0
        self.acknowledged_records = 0
        self.failed_records = 0
        self.longest_request_ms = 0
        self.request_ms = 0
        self.requests = 0
        self.retries = 0

    def answered(self, took_ms: int) -> None:
        """A Produce request has its answer."""
        self.requests += 1
        self.request_ms += took_ms
        self.longest_request_ms = max(self.longest_request_ms, took_ms)

    def as_dict(self) -> dict[str, float]:
        """Names with their units: `_total` is a count since the start."""
        return {
            "records_acknowledged_total": self.acknowledged_records,
            "records_failed_total": self.failed_records,
            "batches_acknowledged_total": self.acknowledged_batches,
            "batch_bytes_acknowledged_total": self.acknowledged_bytes,
            "batch_retries_total": self.retries,
            "requests_answered_total": self.requests,
            "records_per_batch_average": _ratio(
                self.acknowledged_records, self.acknowledged_batches
            ),
            "request_latency_average_ms": _ratio(self.request_ms, self.requests),
            "request_latency_longest_ms": self.longest_request_ms,
        }


def _ratio(whole: float, parts: int) -> float:
    return whole / parts if parts else 0.0
