"""IN-6: the page of `barnabas console` in front of a real Apache Kafka.

Each page shows true figures or says what a broker of Kafka does not offer. Every test fails if the
browser reports an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from barnabas.client import (
    AclBinding,
    AclEntry,
    Operation,
    Pattern,
    PermissionType,
    ResourceType,
)
from barnabas.client.admin.admin import NewTopic
from barnabas.client.sync.producer import SyncAdmin, SyncProducer
from barnabas.types import TopicPartition
from benchmarks import brokers
from tests.kit.processes.chromium import opened
from tests.kit.processes.web_console import web_console

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.foreign, pytest.mark.slow, pytest.mark.timeout(600)]

SETTINGS = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:ANONYMOUS",
    "offsets.topic.num.partitions": 1,
    "transaction.state.log.num.partitions": 1,
}
RULE = AclBinding(
    Pattern(ResourceType.TOPIC, "orders"),
    AclEntry("User:alice", "*", Operation.READ, PermissionType.ALLOW),
)
TITLES = {
    "#/": "attention",
    "#/events": "Events",
    "#/topics": "Topics",
    "#/topics/orders": "orders",
    "#/topics/orders/messages": "Messages",
    "#/groups": "Consumer groups",
    "#/groups/readers": "readers",
    "#/transactions": "Transactions",
    "#/brokers": "Brokers",
    "#/brokers/0": "Broker 0",
    "#/clients": "Clients",
    "#/clients/producers": "Producers",
    "#/pipelines": "Pipelines",
    "#/security": "Security",
}


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Kafka with records, a group that has stopped, an open transaction and a rule."""
    with brokers.kafka(tmp_path_factory.mktemp("kafka"), settings=SETTINGS) as kafka:
        servers = kafka.servers
        with SyncAdmin(servers) as admin:
            admin.create_topics([NewTopic("orders", 2), NewTopic("copies", 1)])
            with SyncProducer(servers) as producer:
                for number in range(20):
                    producer.send("orders", b'{"number": %d}' % number, partition=number % 2)
            admin.alter_group_offsets("readers", {TopicPartition("orders", 0): 3})
            admin.create_acls(RULE)
            with SyncProducer(servers, transactional_id="copier") as producer:
                producer.init_transactions()
                producer.begin_transaction()
                producer.send("copies", b"not committed yet").result(60)
                yield servers
                producer.abort_transaction()


@pytest.fixture(scope="module")
def address(servers: str) -> Iterator[str]:
    with web_console(servers) as running:
        yield f"http://localhost:{running.port}/"


def cells(page: Page, name: str) -> list[str]:
    """Wait for the row of a table that has this cell, and return the texts of its cells."""
    row = page.get_by_role("row").filter(has=page.get_by_text(name, exact=True)).first
    row.wait_for()
    return re.split(r"\s*\t\s*", row.inner_text())


def test_every_page_opens_without_an_error(browser: Browser, address: str) -> None:
    with opened(browser) as page:
        page.goto(address)
        for place, title in TITLES.items():
            page.goto(address + place)
            page.locator("h1", has_text=title).wait_for()
            page.locator(".waiting").wait_for(state="detached")
            assert page.locator("[role=alert]").all_inner_texts() == [], place


def test_the_overview_finds_the_group_that_has_stopped(browser: Browser, address: str) -> None:
    with opened(browser) as page:
        page.goto(address)
        finding = page.locator(".finding").filter(has_text="Group readers has stopped")
        finding.wait_for()
        assert finding.locator(".cause").count() == 0  # Kafka reports none
        keys = page.locator(".key").all_inner_texts()
        assert [text.split()[:2] for text in keys[:3]] == [
            ["1", "broker"],
            ["4", "topics"],
            ["1", "consumer"],
        ]
        page.get_by_text("keeps no events that can be read here").wait_for()


def test_the_events_say_that_kafka_keeps_none(browser: Browser, address: str) -> None:
    with opened(browser) as page:
        page.goto(address + "#/events")
        page.get_by_text("Broker 0 keeps no events that can be read here").wait_for()


def test_topics_and_their_messages(browser: Browser, address: str) -> None:
    with opened(browser) as page:
        page.goto(address + "#/topics")
        assert cells(page, "orders")[:5] == ["orders", "in sync", "2", "1", "20"]
        page.goto(address + "#/topics/orders")
        page.locator(".replica-leader").nth(1).wait_for()
        page.get_by_text("min.insync.replicas").wait_for()  # of the broker
        page.get_by_role("link", name="readers").wait_for()
        page.goto(address + "#/topics/orders/messages")
        page.get_by_text("20 messages.").wait_for()
        page.get_by_label("Message at offset 9 of partition 1").click()
        assert page.locator(".json-word").first.inner_text() == "19"


def test_groups_and_their_lag(browser: Browser, address: str) -> None:
    with opened(browser) as page:
        page.goto(address + "#/groups")
        page.get_by_text("stopped", exact=True).first.wait_for()
        assert cells(page, "readers")[:3] == ["readers", "stopped", "7"]
        page.goto(address + "#/groups/readers")
        assert "7" in cells(page, "orders")


def test_an_open_transaction(browser: Browser, address: str) -> None:
    with opened(browser) as page:
        page.goto(address + "#/transactions")
        row = page.get_by_role("row").filter(has_text="copier")
        row.filter(has_text="copies-0").wait_for()
        assert "Ongoing" in row.inner_text()


def test_in_6_producers_are_known_and_events_are_not(browser: Browser, address: str) -> None:
    with opened(browser) as page:
        page.goto(address + "#/clients/producers")
        row = page.get_by_role("row").filter(has_text="copier")
        row.filter(has_text="copies-0, from offset 0").wait_for()
        page.goto(address + "#/clients")
        page.get_by_text("No group has members now.").wait_for()
        page.get_by_text("No quotas are set").wait_for()
        page.get_by_text("keeps no events that can be read here").wait_for()


def test_brokers_and_rules(browser: Browser, address: str) -> None:
    with opened(browser) as page:
        page.goto(address + "#/brokers/0")
        page.get_by_text("the controller").wait_for()
        page.get_by_text("Broker 0 keeps no events that can be read here").wait_for()
        page.get_by_text("authorizer.class.name").first.wait_for()
        page.goto(address + "#/security")
        rule = page.get_by_role("row").filter(has_text="User:alice")
        rule.wait_for()
        assert "Topic orders" in rule.inner_text()
        page.get_by_text("No user has SCRAM credentials.").wait_for()
