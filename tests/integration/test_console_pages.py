"""IN-6: the page of `barnabas console` in a real browser, in front of a cluster of three brokers.

Every test fails if the browser reports an error, a breach of the page's policy, or a dialog: a name
or a record that became markup would show as one of these.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import pytest

import barnabas
from barnabas.client.admin.admin import NewTopic
from barnabas.client.sync.producer import SyncAdmin, SyncProducer
from barnabas.testing import Cluster
from barnabas.types import TopicPartition
from tests.kit.processes.chromium import opened
from tests.kit.processes.web_console import web_console
from tests.kit.waiting import wait_until

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.slow

MARKUP = "<img src=x onerror=alert(1)>"
RIGHT_TO_LEFT = "\u202eevil\u202c مجموعة"
LONG = "a" * 249
MOST_BYTES = 250_000
ADDRESSES = {
    "#/": "attention",
    "#/events": "Events",
    "#/topics": "Topics",
    "#/topics/orders": "orders",
    f"#/topics/{LONG}": LONG,
    "#/topics/orders/messages": "Messages",
    "#/groups": "Consumer groups",
    "#/groups/%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E": MARKUP,
    "#/transactions": "Transactions",
    "#/brokers": "Brokers",
    "#/brokers/2": "Broker 2",
    "#/clients": "Clients",
    "#/clients/producers": "Producers",
    "#/pipelines": "Pipelines",
    "#/security": "Security",
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with barnabas.Cluster(3, config={"zookeeper.session.timeout.ms": "2000"}) as running:
        servers = running.bootstrap_servers
        with SyncAdmin(servers) as admin:
            admin.create_topics(
                [
                    NewTopic("orders", assignment={0: [1, 2, 3], 1: [2, 3, 1], 2: [3, 1, 2]}),
                    NewTopic(LONG, 1),
                ]
            )
            with SyncProducer(servers) as producer:
                for number in range(30):
                    value = b'{"number": 12345678901234567890, "n": %d}' % number
                    producer.send("orders", value, key=b"%d" % number, partition=number % 3)
                headers = [(MARKUP, b"\x00\xff")]
                hostile = MARKUP.encode()
                producer.send("orders", hostile, key=hostile, headers=headers, partition=0)
                producer.send("orders", None, key=RIGHT_TO_LEFT.encode(), partition=0)
                producer.send("orders", b"z" * 5_000, partition=1)
            for group in (MARKUP, RIGHT_TO_LEFT):
                admin.alter_group_offsets(group, {TopicPartition("orders", 1): 5})
        yield running


@pytest.fixture(scope="module")
def address(cluster: Cluster) -> Iterator[str]:
    with web_console(cluster.bootstrap_servers) as running:
        yield f"http://localhost:{running.port}/"


def see(page: Page, text: str) -> None:
    """Wait until the page shows the text."""
    page.get_by_text(text).first.wait_for()


def heading(page: Page) -> str:
    return page.locator("h1").inner_text()


@pytest.mark.parametrize(("width", "scheme"), [(1400, "light"), (400, "dark")])
def test_every_page_opens_and_fits_the_screen(
    browser: Browser, address: str, width: int, scheme: str
) -> None:
    with opened(browser, width, scheme) as page:
        page.goto(address)
        for place, title in ADDRESSES.items():
            page.goto(address + place)
            page.locator("h1", has_text=title).wait_for()
            page.locator(".waiting").wait_for(state="detached")
            assert page.locator("[role=alert]").all_inner_texts() == [], place
            beyond = page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert beyond <= 0, f"{place} is {beyond} px too wide"
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert ground == ("rgb(20, 23, 29)" if scheme == "dark" else "rgb(246, 243, 236)")


def test_the_first_view_is_small(browser: Browser, address: str) -> None:
    with opened(browser) as page:
        loaded: list[int] = []
        page.on("response", lambda response: loaded.append(len(response.body())))
        page.goto(address, wait_until="networkidle")
        page.locator("h1").wait_for()
        assert 100_000 < sum(loaded) <= MOST_BYTES
        print(f"{sum(loaded)} bytes are loaded for the first view")


def test_topics_show_the_true_figures(browser: Browser, address: str) -> None:
    with opened(browser) as page:
        page.goto(address + "#/topics?search=orders")
        row = page.get_by_role("row").filter(has_text="orders")
        assert re.split(r"\s*\t\s*", row.inner_text())[:5] == ["orders", "in sync", "3", "3", "33"]
        page.get_by_role("link", name="orders").click()
        page.get_by_role("cell", name="1 leader", exact=False).first.wait_for()
        assert page.locator(".replica").count() == 9
        assert page.locator(".replica-leader").count() == 3
        page.get_by_role("columnheader", name="HW").wait_for()
        see(page, "All configs have their defaults.")


def test_messages_are_shown_as_they_are(browser: Browser, address: str) -> None:
    with opened(browser) as page:
        page.goto(address + "#/topics/orders/messages?partition=0")
        see(page, "12 messages.")
        page.get_by_label("Message at offset 10 of partition 0").click()
        details = page.locator(".details")
        assert details.locator("pre").all_inner_texts() == [MARKUP, MARKUP]
        assert details.locator(".headers th").all_inner_texts() == [MARKUP]
        page.get_by_label("Message at offset 9 of partition 0").click()
        number = page.locator(".json-word").first
        assert number.inner_text() == "12345678901234567890"
        page.get_by_label("Search keys").fill("no such text")
        see(page, "Nothing that was read contains this text.")
        assert "search=no+such+text" in page.url


def test_older_messages_of_all_partitions_are_a_click_away(browser: Browser, address: str) -> None:
    with opened(browser) as page:
        page.goto(address + "#/topics/orders/messages?search=number")
        see(page, "30 messages of")
        assert page.get_by_role("button", name="Older").is_disabled()
        page.goto(address + "#/topics/orders/messages?from=before&offsets=3.2.1")
        see(page, "6 messages.")
        page.get_by_role("button", name="Newer").click()
        page.wait_for_url("**from=after&offsets=3.2.1")
        see(page, "27 messages.")
        page.get_by_role("button", name="Older").click()
        see(page, "6 messages.")


def test_a_large_value_is_shown_on_request(browser: Browser, address: str) -> None:
    with opened(browser) as page:
        page.goto(address + "#/topics/orders/messages?partition=1&from=10")
        page.get_by_label("Message at offset 10 of partition 1").click()
        page.get_by_role("button", name="Show all").click()
        wait_until(
            partial(page.evaluate, "document.querySelector('.tall bdi')?.innerText.length == 5000")
        )


def test_new_messages_are_followed(browser: Browser, address: str, cluster: Cluster) -> None:
    with opened(browser) as page:
        page.goto(address + f"#/topics/{LONG}/messages?follow=1")
        page.locator(".live").wait_for()
        with SyncProducer(cluster.bootstrap_servers) as producer:
            producer.send(LONG, b"the news")
        see(page, "the news")
        page.get_by_role("button", name="Pause").click()
        see(page, "paused")


def test_the_keyboard_is_enough(browser: Browser, address: str) -> None:
    with opened(browser) as page:
        page.goto(address)
        page.locator("h1").wait_for()
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "content"
        page.keyboard.press("/")
        wait_until(partial(page.evaluate, "document.activeElement?.type == 'search'"))
        page.keyboard.type("orders")
        wait_until(partial(page.evaluate, "location.hash.endsWith('search=orders')"))
        page.get_by_text("1 topic", exact=True).wait_for()
        while page.evaluate("document.activeElement.textContent") != "orders":
            page.keyboard.press("Tab")
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline == "solid"
        page.keyboard.press("Enter")
        page.locator("h1", has_text="orders").wait_for()


FORMATS = [
    ("number(1234567)", "1,234,567"),
    ("number(null)", "—"),
    ("bytes(0)", "0 B"),
    ("bytes(1288490189)", "1.2 GiB"),
    ("bytes(1023.9 * 1024)", "1 MiB"),
    ("duration(0)", "0 s"),
    ("duration(0.0004)", "1 ms"),
    ("duration(200)", "3 min 20 s"),
    ("duration(9.97)", "10 s"),
    ("duration(86400)", "1 d"),
    ("duration(59.6)", "1 min"),
    ("rate(0.004)", "0/s"),
    ("rate(1234.5)", "1,235/s"),
    ("counted(1, 'topic')", "1 topic"),
    ("prettyHex('deadbeef')", "000000  de ad be ef"),
    ("""prettyJson('{"a":[1,{}],"a":"x,"').map((each) => each.text).join("")""", None),
]


def test_figures_are_written_for_people(browser: Browser, address: str) -> None:
    with opened(browser) as page:
        page.goto(address)
        for call, expected in FORMATS:
            told = page.evaluate(f"import('/static/format.js').then((format) => format.{call})")
            cut = '{\n  "a": [\n    1,\n    {}\n  ],\n  "a": "x,"'
            assert told == (cut if expected is None else expected), call


def test_a_killed_broker_is_shown_with_the_cause(
    browser: Browser, address: str, cluster: Cluster
) -> None:
    """It is the last test of the module, which has two brokers from here on."""
    with opened(browser) as page:
        page.goto(address + "#/events?kind=election&topic=orders")
        page.locator("h1").wait_for()
        cluster.kill_broker(3)
        election = page.locator(".events > li").filter(has_text="broker 3").first
        election.wait_for()
        assert "broker 3 failed: its session ended" in election.locator(".cause").inner_text()
        page.goto(address)
        finding = page.locator(".finding").filter(has_text="Broker 3 has replicas").first
        finding.wait_for()
        assert "its session ended" in finding.locator(".cause").inner_text()
        assert "attention" in heading(page)


def test_a_console_that_is_gone_is_told_quietly(browser: Browser, cluster: Cluster) -> None:
    with web_console(cluster.bootstrap_servers) as running, opened(browser) as page:
        page.goto(f"http://localhost:{running.port}/#/topics")
        see(page, "orders")
        running.stop()
        see(page, "The server does not answer.")
        see(page, "The figures are from")
        assert page.get_by_role("link", name="orders").count() == 1
