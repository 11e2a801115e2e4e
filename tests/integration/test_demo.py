"""IN-7: `barnabas demo` runs a cluster, and its console explains what happens in it.

The tests follow one round of the script, so each of them needs those before it. The incidents are
found as somebody would who knows nothing but the console: from the overview, by its links.
"""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

import pytest

from tests.kit.pictures.demo_picture import draw_demo
from tests.kit.pictures.page_picture import tab
from tests.kit.processes.chromium import opened
from tests.kit.processes.command_line import COMMAND
from tests.kit.waiting import wait_until

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

STEP_S = 300.0
"""What a slow machine misses in one round of the script comes again in the next one."""


class Demo:
    """The running command, whose steps are read one after the other."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        self.process = process
        self._lines = iter(process.stdout.readline, "")
        self.url = self.after("Open the console: ").split()[3]

    def after(self, words: str) -> str:
        """Return the next line with these words, when it was printed."""
        return next(line for line in self._lines if words in line)

    def read(self, path: str) -> Any:
        with urlopen(self.url + path, timeout=30) as response:
            return json.load(response)

    def causes(self, kind: str) -> list[str]:
        return [event["cause"] for event in self.read(f"api/events?kind={kind}")["events"]]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    errors = tmp_path_factory.mktemp("demo") / "errors"
    with (
        errors.open("wb") as written,
        subprocess.Popen(
            [COMMAND, "demo", "--port", "0"], stdout=subprocess.PIPE, stderr=written, text=True
        ) as process,
    ):
        try:
            yield Demo(process)
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)
        finally:
            process.kill()
    assert (process.returncode, errors.read_text()) == (0, "")


def finding(page: Page, demo: Demo, words: str, cause: str = "") -> Locator:
    """Return the finding with these words and this cause, once the overview has it."""
    page.goto(demo.url)
    found = page.locator(".finding").filter(has_text=words).filter(has_text=cause).first
    found.wait_for(timeout=STEP_S * 1_000)
    return found


def test_in_7_a_rebalance_and_a_failover_are_explained(demo: Demo) -> None:
    assert demo.read("api/overview")["brokers"] == 3
    demo.after("joins the group analytics")
    wait_until(
        lambda: any(
            "analytics-3" in cause and "joined" in cause
            for cause in demo.causes("group-generation")
        ),
        STEP_S,
    )
    demo.after("Broker 2 is killed")
    wait_until(lambda: "broker 2 failed: its session ended" in demo.causes("election"), STEP_S)


def test_in_6_a_consumer_that_died_is_found_from_the_overview(demo: Demo, browser: Browser) -> None:
    demo.after("The member of reports is killed")
    with opened(browser) as page:
        title = "Group reports has stopped with unread records"
        stopped = finding(page, demo, title, "session timed out")  # the event may come later
        assert "session timed out" in stopped.locator(".cause").inner_text()
        stopped.get_by_role("link", name="Show the details").click()
        page.locator("h1", has_text="reports").wait_for()
        event = page.locator(".events > li").first
        event.wait_for()
        assert "session timed out" in event.locator(".cause").inner_text()
        assert "check whether the member's process" in event.locator(".advice").inner_text()
        assert page.get_by_text("no member of the group has the partition").count() > 0


def test_in_6_a_follower_that_fell_behind_is_found_from_the_overview(
    demo: Demo, browser: Browser
) -> None:
    demo.after("Broker 2 is paused")
    with opened(browser) as page:
        finding(page, demo, "fewer replicas in sync than assigned", "broker 2 is")
        page.get_by_role("link", name="Events", exact=True).click()
        page.get_by_role("combobox").select_option("isr-shrink")
        late = page.locator(".events > li").filter(has_text="replica.lag.time.max.ms is 5000")
        late.first.wait_for()
        assert "broker 2 is" in late.first.locator(".cause").inner_text()
        assert "disk and network" in late.first.locator(".advice").inner_text()


def test_in_6_a_rebalance_storm_is_found_from_the_overview(demo: Demo, browser: Browser) -> None:
    demo.after("A third consumer of checkout ends")
    with tab(browser) as page:
        picture = draw_demo(page, demo.url)  # that of the README
        assert "Group checkout has had" in picture and "session timed out" in picture
        storm = finding(page, demo, "Group checkout has had")
        assert "checkout-3" in storm.locator(".cause").inner_text()
        storm.get_by_role("link", name="Show the details").click()
        page.locator("h1", has_text="checkout").wait_for()
        joins = page.locator(".events > li .cause").filter(has_text="checkout-3")
        joins.nth(2).wait_for()
