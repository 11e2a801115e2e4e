"""Waits for the events that brokers report, and pauses brokers to provoke some."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from barnabas.client import SyncAdmin
from barnabas.client.admin.event_admin import by_time
from barnabas.events import Event
from tests.kit.processes.broker_process import BrokerProcess
from tests.kit.waiting import wait_until

WITHIN_S = 180.0


def the_event(admin: SyncAdmin, is_meant: Callable[[Event], bool]) -> Event:
    """Wait for an event, and return the first one of this kind."""
    found: list[Event] = []

    def is_there() -> bool:
        found[:] = [event for _, event in by_time(admin.events()) if is_meant(event)]
        return bool(found)

    wait_until(is_there, WITHIN_S)
    return found[0]


@contextmanager
def paused(broker: BrokerProcess) -> Iterator[None]:
    """It says nothing, and its connections stay."""
    assert broker.process is not None
    broker.process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        broker.process.send_signal(signal.SIGCONT)
