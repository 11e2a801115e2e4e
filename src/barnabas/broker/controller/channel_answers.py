"""The answers of brokers to the controller's requests, as its channels pass them on."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from barnabas.cluster.controller_requests import ControlRequest
from barnabas.types import TopicPartition

Codes = Mapping[TopicPartition, int]
Answered = Callable[[int, ControlRequest, Codes], None]
"""Gets the broker that has answered, its request, and an error code for each partition of it."""
Deposed = Callable[[Exception], None]
"""Gets the error that makes it pointless to go on: a broker knows a later controller epoch."""
