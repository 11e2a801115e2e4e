"""A producer's accumulator and its records."""

from __future__ import annotations

from typing import Any

from barnabas.client.config import ProducerConfig
from barnabas.client.producer.accumulator import Accumulator
from barnabas.client.producer.batch import CheckedRecord
from barnabas.types import TopicPartition

T0 = TopicPartition("t", 0)


SIZE = 100


def record(text: str = "x", size_bytes: int = SIZE) -> CheckedRecord:
    return CheckedRecord("t", text.encode(), None, None, None, (), size_bytes)


def identified(**options: Any) -> Accumulator:
    accumulator = Accumulator(ProducerConfig(batch_size=61 + 3 * SIZE)._replace(**options))
    accumulator.identify(9, 0)
    return accumulator
