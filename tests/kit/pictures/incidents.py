"""Three incidents in a real cluster, each of which is explained by the console's pages.

`python -m tests.kit.pictures incidents` draws what somebody sees who follows the clicks of
docs/what-happened.md. tests/integration/test_incidents.py follows the same clicks.
"""

from __future__ import annotations

import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.client.admin.admin import NewTopic
from barnabas.client.sync.producer import SyncAdmin, SyncProducer
from tests.kit.pictures.page_picture import Part, draw, end_of, start_of
from tests.kit.processes.cluster_process import ClusterProcess, cluster_process
from tests.kit.processes.command_line import COMMAND, with_settings
from tests.kit.processes.web_console import WebConsole, web_console
from tests.kit.waiting import wait_until

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

FOLLOWER: Final = 2
"""The broker that leads no partition, and may therefore stop without an election."""
_STARTS: Final = 4
_LOOKS: Final = 6
"""Figures of the chart before the consumer dies, so that the chart shows the change."""
_PATIENCE_MS: Final = 60_000
_OPTIONS: Final = (
    "replica.lag.time.max.ms=5000",
    # A broker that is stopped for a while keeps its session.
    "zookeeper.session.timeout.ms=60000",
)
_PLACES: Final = ([1, 3, 2], [3, 1, 2])
_TOPICS: Final = {"__consumer_offsets": 1, "orders": 2, "payments": 1}
"""The partitions of each topic. The first one is created here, so that its leader is known, too."""


class Site:
    """A cluster with a load, two groups that read it, and the address of a console."""

    def __init__(self, cluster: ClusterProcess, console: WebConsole) -> None:
        self.cluster = cluster
        self.console = console
        self.url = f"http://localhost:{console.port}/"
        self.steady = self.consume("orders", "checkout", "checkout-1")
        self.reports = self.consume("payments", "reports", "reports-1")

    def consume(
        self, topic: str, group: str, client_id: str, *words: str
    ) -> subprocess.Popen[bytes]:
        """Start `barnabas consume` as a member of a group."""
        configs = [
            f"client.id={client_id}",
            "session.timeout.ms=6000",
            "heartbeat.interval.ms=500",
            "auto.commit.interval.ms=1000",
        ]
        line = ["consume", topic, "--group", group, *words]
        line += [word for config in configs for word in ("--consumer-property", config)]
        line += ["--bootstrap-server", self.cluster.bootstrap_servers]
        return subprocess.Popen(
            [COMMAND, *with_settings(line)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def wait_for_looks(self, group: str, count: int) -> None:
        """Return when the console has counted what a group has not read this often."""

        def has_looked() -> bool:
            answer = self.console.ask(f"/api/groups/{group}")
            if answer.status == 404:  # it has not listed the group yet
                return False
            values = answer.json["lag"]["values"]
            return len([value for value in values if value is not None]) >= count

        wait_until(has_looked, _PATIENCE_MS / 1_000)

    def close(self) -> None:
        for member in (self.steady, self.reports):
            member.kill()
            member.wait()


class Picture(NamedTuple):
    """A picture of a page, with the name of its file."""

    name: str
    svg: str


class Story(NamedTuple):
    """What somebody found out: the clicks, the words of the cause, and pictures of the pages."""

    clicks: list[str]
    cause: str
    advice: str
    pictures: list[Picture]


class Incident(NamedTuple):
    """An incident: what causes it, how that is found with the console alone, and what ends it."""

    title: str
    cause: Callable[[Site], None]
    find: Callable[[Page, str], Story]
    repair: Callable[[Site], None]


@contextmanager
def site(directory: Path) -> Iterator[Site]:
    """Run three brokers, a producer and a console until the end of the block."""
    is_over = threading.Event()
    with ExitStack() as stack:
        cluster = stack.enter_context(cluster_process(directory, 3, *_OPTIONS))
        with SyncAdmin(cluster.bootstrap_servers) as admin:
            for topic, partitions in _TOPICS.items():
                places = {number: _PLACES[number % 2] for number in range(partitions)}
                admin.create_topics([NewTopic(topic, assignment=places)])
        load = threading.Thread(target=_send, args=(cluster.bootstrap_servers, is_over))
        load.start()
        stack.callback(load.join)
        stack.callback(is_over.set)
        console = stack.enter_context(web_console(cluster.bootstrap_servers))
        found = Site(cluster, console)
        stack.callback(found.close)
        for group in ("checkout", "reports"):
            found.wait_for_looks(group, 1)
        yield found


def _send(servers: str, is_over: threading.Event) -> None:
    number = 0
    with SyncProducer(servers) as producer:
        while not is_over.wait(0.1):
            for topic in ("orders", "payments"):
                for _ in range(3):
                    producer.send(topic, b'{"number": %d}' % number)
                    number += 1


def stop_a_follower(site: Site) -> None:
    """Stop a broker's process without ending it; a disk that hangs has the same effect."""
    _signal_follower(site, signal.SIGSTOP)


def continue_follower(site: Site) -> None:
    _signal_follower(site, signal.SIGCONT)


def _signal_follower(site: Site, number: signal.Signals) -> None:
    process = site.cluster.brokers[FOLLOWER].process
    assert process is not None
    process.send_signal(number)


def kill_a_consumer(site: Site) -> None:
    """Let a group lose its only member, without a word from it: `kill -9`."""
    site.wait_for_looks("reports", _LOOKS)
    site.reports.kill()
    site.reports.wait()


def restart_consumer(site: Site) -> None:
    site.reports = site.consume("payments", "reports", "reports-1")


def restart_a_member(site: Site) -> None:
    """Let a member of a group start and end several times, while another one goes on."""
    for _ in range(_STARTS):
        with site.consume("orders", "checkout", "checkout-3", "--max-messages", "1") as member:
            try:
                member.wait(timeout=60)
            finally:
                member.kill()


def find_a_dead_consumer(page: Page, url: str) -> Story:
    """Go from the overview to the group's page, which says since when and why."""
    words = "Group reports has stopped with unread records"
    finding = _finding(page, url, words, "session timed out")
    cause = finding.locator(".cause").inner_text()
    first = _overview(page, "consumer-1", "The overview: a group has stopped")
    finding.get_by_role("link", name="Show the details").click()
    page.locator("h1", has_text="reports").wait_for()
    event = page.locator(".events > li").filter(has_text="session timed out").first
    event.wait_for()
    advice = event.locator(".advice").inner_text()
    page.locator("canvas").wait_for()
    part = Part(0, end_of(page, ".cards > .card:first-child"), "The group since its member died")
    second = Picture("consumer-2", draw(page, part))
    return Story(["Show the details"], cause, advice, [first, second])


def find_a_storm(page: Page, url: str) -> Story:
    """Go from the overview to the group's events, which name the same client again and again."""
    finding = _finding(page, url, "Group checkout has had")
    advice = finding.locator(".advice").inner_text()
    first = _overview(page, "rebalances-1", "The overview: a group rebalances often")
    finding.get_by_role("link", name="Show the details").click()
    page.locator("h1", has_text="checkout").wait_for()
    causes = page.locator(".events > li .cause").filter(has_text="checkout-3")
    causes.nth(2).wait_for()
    events = page.locator(".card").filter(has=page.locator(".events"))
    end = end_of(page, ".events > li:nth-child(-n+4)", 0)
    part = Part(start_of(events), end, "The events of the group")
    second = Picture("rebalances-2", draw(page, part))
    return Story(["Show the details"], "\n".join(causes.all_inner_texts()), advice, [first, second])


def find_a_late_follower(page: Page, url: str) -> Story:
    """Go from the overview to the events that say how far behind the replica is."""
    finding = _finding(page, url, "fewer replicas in sync than assigned", "broker 2 is")
    cause = finding.locator(".cause").inner_text()
    first = _overview(page, "follower-1", "The overview: replicas are not in sync")
    page.get_by_role("link", name="Events", exact=True).click()
    page.get_by_role("combobox").select_option("isr-shrink")
    events = page.locator(".events > li").filter(has_text="replica.lag.time.max.ms is 5000")
    events.first.wait_for()
    advice = events.first.locator(".advice").inner_text()
    part = Part(
        0, end_of(page, ".events > li:nth-child(-n+3)", 0), "The events of the kind isr-shrink"
    )
    second = Picture("follower-2", draw(page, part))
    return Story(["Events", "isr-shrink"], cause, advice, [first, second])


INCIDENTS: Final = (
    Incident("A follower fell behind", stop_a_follower, find_a_late_follower, continue_follower),
    Incident("A consumer died", kill_a_consumer, find_a_dead_consumer, restart_consumer),
    Incident("A rebalance storm", restart_a_member, find_a_storm, lambda site: None),
)


def _finding(page: Page, url: str, words: str, cause: str = "") -> Locator:
    """Open the overview, and return its finding with these words, once it is there."""
    page.goto(url)
    found = page.locator(".finding").filter(has_text=words).filter(has_text=cause).first
    found.wait_for(timeout=_PATIENCE_MS)
    return found


def _overview(page: Page, name: str, title: str) -> Picture:
    return Picture(name, draw(page, Part(0, end_of(page, ".keys"), title)))
