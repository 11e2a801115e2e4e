"""IN-6: each action of `barnabas console --write` in a real browser, in front of three brokers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

import barnabas
from barnabas.client.admin.admin import TOPIC, ConfigResource, NewTopic
from barnabas.client.offsets import EARLIEST
from barnabas.client.sync.consumer import SyncConsumer
from barnabas.client.sync.producer import SyncAdmin, SyncProducer
from barnabas.testing import Cluster
from barnabas.types import TopicPartition
from tests.kit.processes.chromium import opened
from tests.kit.processes.web_console import web_console
from tests.kit.waiting import wait_until

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

pytestmark = pytest.mark.slow

MARKUP = "<img src=x onerror=alert(1)>\u202eevil"
DARK_CARD = "rgb(28, 33, 41)"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    # A follower fetches one large record at a time, so a throttle applies from the second one.
    config = {"auto.leader.rebalance.enable": "false", "replica.fetch.max.bytes": "10000"}
    with barnabas.Cluster(3, config=config) as running:
        with SyncAdmin(running.bootstrap_servers) as admin:
            orders = NewTopic("orders", assignment={0: [1, 2, 3], 1: [2, 3, 1]})
            admin.create_topics([orders, NewTopic("doomed", 1)])
            with SyncProducer(running.bootstrap_servers) as producer:
                for number in range(20):
                    producer.send("orders", b"%d" % number, partition=number % 2)
            admin.alter_group_offsets(MARKUP, {TopicPartition("orders", 0): 9})
        yield running


@pytest.fixture(scope="module")
def admin(cluster: Cluster) -> Iterator[SyncAdmin]:
    with SyncAdmin(cluster.bootstrap_servers) as running:
        yield running


@pytest.fixture(scope="module")
def address(cluster: Cluster) -> Iterator[str]:
    with web_console(cluster.bootstrap_servers, "--write") as running:
        yield f"http://localhost:{running.port}/"


def open_dialog(page: Page, button: str) -> Locator:
    page.get_by_role("button", name=button).click()
    dialog = page.get_by_role("dialog")
    dialog.wait_for()
    return dialog


def preview(dialog: Locator) -> list[list[str]]:
    """Click on it, and return the cells of the table."""
    dialog.get_by_role("button", name="Preview").click()
    dialog.get_by_text("Nothing has been changed yet.").wait_for()
    rows = dialog.get_by_role("row").all()[1:]
    return [re.split(r"\s*\t\s*", row.inner_text().strip()) for row in rows]


def apply(dialog: Locator, told: str) -> None:
    """Click on it, see the result, and close the dialog."""
    dialog.get_by_role("button", name="Apply").click()
    dialog.get_by_role("status").filter(has_text=told).first.wait_for()
    dialog.get_by_role("button", name="Close").click()
    dialog.wait_for(state="detached")


def test_a_topic_is_created(browser: Browser, address: str, admin: SyncAdmin) -> None:
    with opened(browser) as page:
        page.goto(address + "#/topics")
        dialog = open_dialog(page, "Create a topic")
        dialog.get_by_label("Name").fill("made-here")
        dialog.get_by_label("Partitions").fill("3")
        dialog.get_by_label("Replication factor").fill("2")
        dialog.get_by_label("Configs").fill("retention.ms = 60000\ncleanup.policy=delete")
        assert preview(dialog) == [
            ["partitions", "not there", "3"],
            ["replication factor", "not there", "2"],
            ["config cleanup.policy", "not there", "delete"],
            ["config retention.ms", "not there", "60000"],
        ]
        assert "made-here" not in admin.list_topics()
        apply(dialog, "The topic made-here was created.")
        page.get_by_role("link", name="made-here").wait_for()
    (topic,) = admin.describe_topics(["made-here"])
    assert [len(each.replicas) for each in topic.partitions] == [2, 2, 2]


def test_partitions_are_added(browser: Browser, address: str, admin: SyncAdmin) -> None:
    admin.create_topics([NewTopic("growing", 1)])
    with opened(browser, is_refused=True) as page:  # the console may not have seen the topic yet
        page.goto(address + "#/topics/growing")
        dialog = open_dialog(page, "Add partitions")
        dialog.get_by_label("New total").fill("4")
        assert preview(dialog) == [["partitions", "1", "4"]]
        dialog.get_by_text("a key may map to another partition").wait_for()
        apply(dialog, "The topic growing has 4 partitions.")
        page.locator(".key").filter(has_text="4").filter(has_text="partitions").wait_for()
    assert len(admin.describe_topics(["growing"])[0].partitions) == 4


def test_configs_are_changed_and_shown_at_once(
    browser: Browser, address: str, admin: SyncAdmin
) -> None:
    admin.alter_configs(ConfigResource(TOPIC, "orders"), {"segment.bytes": 2_000_000})
    with opened(browser) as page:
        page.goto(address + "#/topics/orders")
        dialog = open_dialog(page, "Change configs")
        dialog.get_by_label("Set", exact=True).fill("retention.ms=7200000")
        dialog.get_by_label("Back to the default").fill("segment.bytes")
        assert preview(dialog) == [
            ["retention.ms", "604800000 (default)", "7200000 (dynamic topic)"],
            ["segment.bytes", "2000000 (dynamic topic)", "1073741824 (default)"],
        ]
        apply(dialog, "The configs of topic orders were changed.")
        page.get_by_role("cell", name="7200000").wait_for()
    entries = admin.describe_configs(ConfigResource(TOPIC, "orders"))
    values = {each.name: each.value for each in entries}
    assert (values["retention.ms"], values["segment.bytes"]) == ("7200000", "1073741824")


def test_offsets_of_a_group_with_a_hostile_name_are_reset(
    browser: Browser, address: str, admin: SyncAdmin
) -> None:
    with opened(browser) as page:
        page.goto(address + f"#/groups/{quote(MARKUP, safe='')}")
        dialog = open_dialog(page, "Reset offsets")
        assert dialog.get_by_role("heading").inner_text() == f"Reset offsets of {MARKUP}"
        dialog.get_by_label("Where to").select_option("shift")
        dialog.get_by_label("Records").fill("-4")
        assert preview(dialog) == [["orders-0", "9", "5"]]
        apply(dialog, f"The offsets of group {MARKUP} were reset.")
    assert admin.list_group_offsets(MARKUP)[TopicPartition("orders", 0)].offset == 5


def test_preferred_leaders_are_elected(
    browser: Browser, address: str, admin: SyncAdmin, cluster: Cluster
) -> None:
    def leaders() -> list[int]:
        (topic,) = admin.describe_topics(["orders"])
        return [each.leader for each in topic.partitions]

    cluster.stop_broker(1)
    wait_until(lambda: leaders()[0] != 1)
    cluster.start_broker(1)
    wait_until(lambda: 1 in admin.describe_topics(["orders"])[0].partitions[0].isr)
    with opened(browser) as page:
        page.goto(address + "#/brokers")
        dialog = open_dialog(page, "Elect preferred leaders")
        assert ["orders-0", f"broker {leaders()[0]}", "broker 1"] in preview(dialog)
        apply(dialog, "now led by the preferred leader")
    assert leaders() == [1, 2]


def test_a_reassignment_is_started_shown_and_cancelled(
    browser: Browser, address: str, admin: SyncAdmin, cluster: Cluster
) -> None:
    admin.create_topics([NewTopic("moving", assignment={0: [1], 1: [1]})])
    with SyncProducer(cluster.bootstrap_servers) as producer:
        for _ in range(4):
            producer.send("moving", b"x" * 50_000, partition=0)
    with opened(browser, is_refused=True) as page:  # the console may not have seen the topic yet
        page.goto(address + "#/topics/moving")
        dialog = open_dialog(page, "Reassign partitions")
        dialog.get_by_label("Brokers", exact=True).fill("2,2")
        page.keyboard.press("Enter")
        dialog.get_by_role("alert").filter(has_text="Duplicate broker ids").wait_for()
        dialog.get_by_label("Brokers", exact=True).fill("2")
        dialog.get_by_label("Partition", exact=True).fill("0")
        dialog.get_by_label("Throttle").fill("1")
        ((what, before, after), throttle) = preview(dialog)
        assert (what, before) == ("moving-0", "1")
        assert re.fullmatch(r"2\s+adds 2, removes 1; copies 20[\d,]+ bytes", after)
        assert throttle == ["throttle of brokers 1,2", "none", "1 byte/s"]
        apply(dialog, "The reassignment of 1 partition was started.")
        moves = page.get_by_role("table", name="Partitions that are being reassigned")
        row = moves.get_by_role("row").nth(1)
        row.wait_for()
        assert row.inner_text().split() == ["0", "2", "1", "2"]
        dialog = open_dialog(page, "Cancel a reassignment")
        assert preview(dialog) == [["moving-0", "2,1 (adds 2, removes 1)", "1"]]
        apply(dialog, "The reassignment of 1 partition was cancelled.")
        moves.wait_for(state="detached")
        dialog = open_dialog(page, "Clear throttles")
        rows = preview(dialog)
        assert ["leader.replication.throttled.rate of broker 1", "1", "deleted"] in rows
        apply(dialog, "The throttles were cleared.")
    assert admin.describe_topics(["moving"])[0].partitions[0].replicas == (1,)


def test_a_record_is_produced(browser: Browser, address: str, cluster: Cluster) -> None:
    with opened(browser) as page:
        page.goto(address + "#/topics/orders")
        dialog = open_dialog(page, "Produce a record")
        dialog.get_by_label("Value", exact=True).fill(MARKUP)
        dialog.get_by_label("Key is given as").select_option("hex")
        dialog.get_by_label("Key", exact=True).fill("00 ff")
        dialog.get_by_label("Headers", exact=True).fill("trace: a:b\nempty:")
        dialog.get_by_label("Partition", exact=True).fill("1")
        assert preview(dialog) == [
            ["partition", "not there", "1"],
            ["key", "not there", "00ff (2 bytes, hex)"],
            ["value", "not there", f"{MARKUP} (35 bytes)"],
            ["header 1, trace", "not there", "a:b (3 bytes)"],
            ["header 2, empty", "not there", "(0 bytes)"],
        ]
        apply(dialog, "The record is at offset 10 of partition 1.")
    with SyncConsumer(cluster.bootstrap_servers) as consumer:
        consumer.assign([TopicPartition("orders", 1)])
        consumer.seek(TopicPartition("orders", 1), 10)
        (record,) = consumer.poll(10_000)
    assert (record.key, record.value) == (b"\x00\xff", MARKUP.encode())
    assert list(record.headers) == [("trace", b"a:b"), ("empty", b"")]


def test_records_are_deleted(browser: Browser, address: str, admin: SyncAdmin) -> None:
    with opened(browser) as page:
        page.goto(address + "#/topics/orders")
        dialog = open_dialog(page, "Delete records")
        dialog.get_by_label("Partition").fill("0")
        dialog.get_by_label("First offset to keep").fill("2")
        dialog.get_by_label("Type the name of the topic").fill("orders")
        assert preview(dialog) == [["orders-0", "starts at 0", "starts at 2"]]
        apply(dialog, "orders-0 starts at 2.")
    name = TopicPartition("orders", 0)
    assert admin.list_offsets({name: EARLIEST})[name].offset == 2


def test_a_topic_is_deleted_once_its_name_is_typed(
    browser: Browser, address: str, admin: SyncAdmin
) -> None:
    with opened(browser, is_refused=True) as page:
        page.goto(address + "#/topics/doomed")
        dialog = open_dialog(page, "Delete the topic")
        name = dialog.get_by_label("Type the name of the topic")
        name.fill("doom")
        dialog.get_by_role("button", name="Preview").click()
        dialog.get_by_role("alert").filter(has_text="type the name of the topic").wait_for()
        name.fill("doomed")
        assert preview(dialog) == [["topic doomed", "1 partition, 1 replica of each", "deleted"]]
        apply(dialog, "The topic doomed was deleted.")
        page.locator("h1", has_text="Topics").wait_for()
    assert "doomed" not in admin.list_topics()


def test_the_error_of_kafka_and_a_change_since_the_preview_are_shown(
    browser: Browser, address: str, admin: SyncAdmin
) -> None:
    with opened(browser, is_refused=True) as page:
        page.goto(address + "#/topics/orders")
        dialog = open_dialog(page, "Change configs")
        dialog.get_by_label("Set", exact=True).fill("retention.ms=soon")
        dialog.get_by_role("button", name="Preview").click()
        dialog.get_by_role("alert").filter(has_text="INVALID_CONFIG").wait_for()
        dialog.get_by_label("Set", exact=True).fill("max.message.bytes=5000")
        preview(dialog)
        admin.alter_configs(ConfigResource(TOPIC, "orders"), {"max.message.bytes": 6_000})
        dialog.get_by_role("button", name="Apply").click()
        dialog.get_by_role("alert").filter(has_text="is now 6000 (dynamic topic)").wait_for()
        assert dialog.get_by_role("button", name="Apply").count() == 0
        dialog.get_by_role("button", name="Preview again").click()
        dialog.get_by_role("cell", name="6000 (dynamic topic)").wait_for()
        apply(dialog, "were changed")


def test_a_dialog_is_for_the_keyboard_too(browser: Browser, address: str) -> None:
    with opened(browser) as page:

        def focus() -> Any:
            return page.evaluate("document.activeElement.id || document.activeElement.innerText")

        page.goto(address + "#/topics")
        button = page.get_by_role("button", name="Create a topic")
        button.focus()
        page.keyboard.press("Enter")
        page.get_by_role("dialog").wait_for()
        seen = []
        for _ in range(7):
            seen.append(focus())
            page.keyboard.press("Tab")
        fields = [f"action-{name}" for name in ("topic", "partitions", "replicas", "configs")]
        assert seen == [*fields, "Cancel", "Preview", "action-topic"]
        page.keyboard.press("Shift+Tab")
        page.keyboard.press("Shift+Tab")
        assert focus() == "Preview", "it goes round backwards as well"
        page.keyboard.press("/")
        assert page.get_by_role("dialog").count() == 1
        page.keyboard.press("Escape")
        page.get_by_role("dialog").wait_for(state="detached")
        wait_until(partial(_is_focused, button))


def _is_focused(element: Locator) -> bool:
    found: bool = element.evaluate("(each) => each === document.activeElement")
    return found


def _list_replicas(page: Page, text: str) -> None:
    page.get_by_label("New replicas").select_option("typed")
    page.get_by_label("Replicas", exact=True).fill(text)
    page.get_by_label("Throttle").fill("1000000")


OPENERS: dict[str, Callable[[Page], Any]] = {
    "Create a topic": lambda page: page.get_by_label("Name").fill("n" * 200),
    "Reassign partitions": lambda page: _list_replicas(page, "0: 3,2,1\n1: 1,3,2"),
    "Produce a record": lambda page: page.get_by_label("Value", exact=True).fill("v" * 500),
}


@pytest.mark.parametrize("button", OPENERS)
def test_a_dialog_fits_a_narrow_dark_screen(browser: Browser, address: str, button: str) -> None:
    with opened(browser, 400, "dark") as page:
        page.goto(address + ("#/topics" if button == "Create a topic" else "#/topics/orders"))
        dialog = open_dialog(page, button)
        for _ in range(2):
            assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
            assert dialog.evaluate("(each) => each.scrollWidth - each.clientWidth") <= 0
            box = dialog.bounding_box()
            assert box is not None and box["x"] >= 0 and box["x"] + box["width"] <= 400
            if dialog.get_by_role("button", name="Apply").count() == 0:
                OPENERS[button](page)
                preview(dialog)
        ground = dialog.evaluate("(each) => getComputedStyle(each).backgroundColor")
        assert ground == DARK_CARD


def test_a_page_that_only_reads_shows_no_action(browser: Browser, cluster: Cluster) -> None:
    with web_console(cluster.bootstrap_servers) as running, opened(browser) as page:
        for place in ("topics", "topics/orders", "brokers", "brokers/1", f"groups/{quote(MARKUP)}"):
            page.goto(f"http://localhost:{running.port}/#/{place}")
            page.locator("h1").wait_for()
            page.get_by_text("This page only reads.").wait_for()
            page.locator(".waiting").wait_for(state="detached")
            assert page.get_by_role("group", name="Changes").count() == 0
