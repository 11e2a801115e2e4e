"""A broker that is stopped by a signal reports it without calling it its own work (IN-1)."""

from __future__ import annotations

import re
import time
from pathlib import Path

from barnabas.client import SyncAdmin
from tests.kit.processes.broker_process import broker_process
from tests.kit.processes.reported_events import paused, the_event

PAUSED_MS = 3_000


def test_in_1_a_paused_process_used_no_cpu_time(tmp_path: Path) -> None:
    """IN-1: CPU time beside wall time; a pause, a disk and a lack of CPU look alike."""
    limit = PAUSED_MS - 1_000
    with (
        broker_process(tmp_path, f"barnabas.event.loop.delay.ms={limit}") as broker,
        SyncAdmin(broker.bootstrap_servers) as admin,
    ):
        admin.describe_cluster()
        with paused(broker):
            time.sleep(PAUSED_MS / 1_000)
        event = the_event(admin, lambda event: event.kind == "event-loop-delayed")
        assert event.text in broker.log.read_text()
    late = re.match(r"The event loop was delayed by (\d+) ms ", event.text)
    assert late is not None and int(late[1]) >= limit
    figures = re.match(r"in the last (\d+) ms, .* and the whole process (\d+) ms$", event.cause)
    assert figures is not None and int(figures[2]) * 10 < int(figures[1])
    assert event.advice.startswith("the process hardly ran: ")
