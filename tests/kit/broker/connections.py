"""The count of connections under a clock that stands still."""

from __future__ import annotations

from collections.abc import Callable

from barnabas.broker.network.connections import Connections
from barnabas.broker.runtime.descriptors import Descriptors, plenty
from barnabas.config import BrokerConfig
from barnabas.events import EventLog
from barnabas.metrics import Registry

NOW_MS = 1_700_000_000_000


class FakeClock:
    """Time that stands still until it is moved: the clock seam."""

    def __init__(self) -> None:
        self.at_ms = NOW_MS

    def monotonic_ms(self) -> int:
        return self.at_ms

    wall_ms = monotonic_ms


def limited(
    clock: FakeClock | None = None,
    descriptors: Callable[[], Descriptors] = plenty,
    **settings: str,
) -> Connections:
    properties = {name.replace("_", "."): value for name, value in settings.items()}
    clock = clock or FakeClock()
    events = EventLog(clock.wall_ms, Registry())
    return Connections(BrokerConfig(properties), clock, events, descriptors)
