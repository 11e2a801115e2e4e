"""How soon `barnabas console` shows its first view in a browser, and what it loads and needs.

    python -m benchmarks.console [--views N] [--topics N] [--groups N] [--json FILE]

A broker has topics of ten partitions each, and groups with a committed offset. A view is a new
window of Chromium, without anything in its cache, on the same machine: the time is from the
navigation until the overview with its heading is drawn, by the page's own clock. The median of the
views counts. One connection asks for the overview as fast as it is answered: the slowest of many
answers had to be computed, and the median is that of an answer computed before. The memory is what
the console's process has after the views of all topics and groups. The load of the machine is
printed, since everything here shares its cores.
"""

from __future__ import annotations

import http.client
import os
import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import barnabas
from barnabas.client.admin.admin import NewTopic
from barnabas.client.sync.producer import SyncAdmin
from barnabas.types import TopicPartition
from benchmarks.figures import Figure, parser_of, show
from tests.kit.processes.chromium import chromium
from tests.kit.processes.web_console import PATIENCE_S, web_console
from tests.kit.waiting import wait_until

if TYPE_CHECKING:
    from playwright.sync_api import Browser

COMMAND = "python -m benchmarks.console"
VIEWS, TOPICS, PARTITIONS, GROUPS = 5, 1000, 10, 1000
GOAL_SECONDS, GOAL_KILOBYTES, GOAL_MEGABYTES = 1.0, 250.0, 80.0
ASKED = 200
_AT_ONCE = 50


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--views", type=int, default=VIEWS)
    parser.add_argument("--topics", type=int, default=TOPICS)
    parser.add_argument("--groups", type=int, default=GROUPS)
    given = parser.parse_args()
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    with barnabas.Broker() as broker, SyncAdmin(broker.bootstrap_servers) as admin:
        few = first_views(broker.bootstrap_servers, given.views)
        for first in range(0, given.topics, _AT_ONCE):
            numbers = range(first, min(first + _AT_ONCE, given.topics))
            admin.create_topics([NewTopic(f"topic-{n}", PARTITIONS) for n in numbers])
        for number in range(given.groups):
            partition = TopicPartition(f"topic-{number % given.topics}", 0)
            admin.alter_group_offsets(f"group-{number}", {partition: 0})
        many = first_views(broker.bootstrap_servers, given.views)
        computed_ms, shared_ms = overview_ms(broker.bootstrap_servers)
    size = f"{given.topics * PARTITIONS:,} partitions, {given.groups:,} groups"
    figures = [
        Figure("first view, no topics", "s", few.seconds, GOAL_SECONDS, command=COMMAND),
        Figure(f"first view, {size}", "s", many.seconds, GOAL_SECONDS, command=COMMAND),
        Figure("loaded by the first view", "KB", few.kilobytes, GOAL_KILOBYTES, command=COMMAND),
        Figure(
            "resident memory, no topics", "MB", few.resident_mb, GOAL_MEGABYTES, command=COMMAND
        ),
        Figure(f"resident memory, {size}", "MB", many.resident_mb, GOAL_MEGABYTES, command=COMMAND),
        Figure("overview, slowest answer", "ms", computed_ms, command=COMMAND),
        Figure("overview, median answer", "ms", shared_ms, command=COMMAND),
    ]
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    show("web console", figures, given.json)


class Views(NamedTuple):
    """What a number of first views took: medians, and the console's memory after the last one."""

    seconds: float
    kilobytes: float
    resident_mb: float


def first_views(servers: str, views: int) -> Views:
    """Open the overview in new windows, and then the pages of all topics and groups."""
    with web_console(servers) as console, chromium() as browser:
        address = f"http://localhost:{console.port}/"
        seen = [_first_view(browser, address) for _ in range(views)]
        for place in ("api/topics", "api/groups"):
            console.ask(f"/{place}")
        status = Path(f"/proc/{console.process.pid}/status").read_text()
        [resident] = [line for line in status.splitlines() if line.startswith("VmRSS")]
    print("first views:", ", ".join(f"{seconds:.2f} s" for seconds, _ in seen))
    return Views(
        statistics.median(seconds for seconds, _ in seen),
        statistics.median(size for _, size in seen) / 1000,
        int(resident.split()[1]) * 1024 / 1e6,
    )


def _first_view(browser: Browser, address: str) -> tuple[float, int]:
    """Return the seconds until the overview is drawn, and the bytes loaded by then."""
    context = browser.new_context()
    try:
        page = context.new_page()
        # The page notes the time itself, so that asking for it from outside costs nothing.
        page.add_init_script(_NOTE_TIME)
        page.goto(address)
        wait_until(lambda: page.evaluate("window.shownAtMs") is not None)
        milliseconds: float = page.evaluate("window.shownAtMs")
        size: int = page.evaluate(_TRANSFERRED)
        return milliseconds / 1000, size
    finally:
        context.close()


_TRANSFERRED = """
[...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
  .reduce((sum, entry) => sum + entry.transferSize, 0)
"""
_NOTE_TIME = """
new MutationObserver((_, observer) => {
  if (!document.querySelector("h1") || !document.querySelector(".keys")) return;
  observer.disconnect();
  requestAnimationFrame(() => setTimeout(() => { window.shownAtMs = performance.now(); }));
}).observe(document, { childList: true, subtree: true });
"""


def overview_ms(servers: str) -> tuple[float, float]:
    """Return the slowest and the median of the answers to many requests."""
    with web_console(servers) as console:
        connection = http.client.HTTPConnection("127.0.0.1", console.port, timeout=PATIENCE_S)
        taken = []
        for _ in range(ASKED):
            began_s = time.perf_counter()
            connection.request("GET", "/api/overview")
            response = connection.getresponse()
            assert response.status == 200, response.read()
            response.read()
            taken.append((time.perf_counter() - began_s) * 1000)
        connection.close()
    return max(taken), statistics.median(taken)


if __name__ == "__main__":
    main()
