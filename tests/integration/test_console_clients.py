"""IN-6: the clients and producers of `barnabas console`, in front of a real broker.

A member of a group is throttled by a quota, a producer has an open transaction, and another one is
idempotent; each address tells what the broker knows of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

import barnabas
from barnabas.client.admin.admin import NewTopic
from barnabas.client.sync.consumer import SyncConsumer
from barnabas.client.sync.producer import SyncAdmin, SyncProducer
from barnabas.console.client_shapes import ClientRow, Clients, ProducerRow, Producers
from tests.kit.processes.chromium import opened
from tests.kit.processes.web_console import WebConsole, web_console
from tests.kit.waiting import wait_until

if TYPE_CHECKING:
    from playwright.sync_api import Browser

LIMIT = 10_000
SHORT = {"quota.window.num": "2", "quota.window.size.seconds": "1"}


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with barnabas.Broker(config=SHORT) as broker:
        servers = broker.bootstrap_servers
        with SyncAdmin(servers) as admin:
            admin.create_topics([NewTopic("orders", 3), NewTopic("copies", 1)])
            admin.alter_client_quotas({"client-id": "loud"}, {"producer_byte_rate": LIMIT})
            admin.alter_client_quotas({"client-id": None}, {"consumer_byte_rate": 5e6})
            admin.alter_client_quotas({"user": "alice"}, {"request_percentage": 50})
        with (
            SyncProducer(servers, client_id="loud") as loud,
            SyncProducer(servers, transactional_id="copier") as copier,
            SyncConsumer(
                servers, client_id="loud", group_id="readers", auto_offset_reset="earliest"
            ) as consumer,
        ):
            for partition in range(3):  # each is above the limit: the next is throttled
                loud.send("orders", bytes(LIMIT * 6 // 5), partition=partition).result(60)
            consumer.subscribe(["orders"])
            while not consumer.poll(1_000):
                pass
            copier.init_transactions()
            copier.begin_transaction()
            copier.send("copies", b"not committed yet").result(60)
            yield servers
            copier.abort_transaction()


@pytest.fixture(scope="module")
def console(servers: str) -> Iterator[WebConsole]:
    with web_console(servers) as running:
        yield running


def the_client(console: WebConsole) -> ClientRow:
    found: list[ClientRow] = []

    def is_known() -> bool:
        page: Clients = console.get("/api/clients", Clients)
        found[:] = page["clients"]
        return bool(
            found and page["quotas_at"] and found[0]["events"] and found[0]["lag"] is not None
        )

    wait_until(is_known)
    (row,) = found
    return row


def the_producers(console: WebConsole, query: str = "") -> list[ProducerRow]:
    found: list[ProducerRow] = []

    def is_known() -> bool:
        page: Producers = console.get(f"/api/clients/producers{query}", Producers)
        found[:] = page["producers"]
        # The page first has the transactions or the leaders' answers, whichever came first.
        return page["partitions_known"] == page["partitions"] > 4 and any(
            row["started"] for row in found
        )

    wait_until(is_known)
    return found


def test_in_6_a_member_has_its_partitions_quotas_and_events(console: WebConsole) -> None:
    row = the_client(console)
    assert (row["client_id"], row["host"], row["group"]) == ("loud", "127.0.0.1", "readers")
    assert (row["partitions"], row["topics"]) == (3, ["orders"])
    assert row["some"] == ["orders-0", "orders-1", "orders-2"]
    limits = {quota["key"]: (quota["client_id"], quota["value"]) for quota in row["quotas"]}
    assert limits == {"producer_byte_rate": ("loud", LIMIT), "consumer_byte_rate": ("", 5e6)}
    last = row["last_event"]
    assert last is not None and last["kind"] == "throttle" and not last["is_by_host"]
    assert "client-id loud is" in last["text"]


def test_in_6_the_quotas_are_listed_with_those_of_users(console: WebConsole) -> None:
    the_client(console)
    page: Clients = console.get("/api/clients", Clients)
    assert page["quotas_error"] == "" and page["quotas_left_out"] == 0
    assert [(row["user"], row["client_id"], row["key"]) for row in page["quotas"]] == [
        (None, "", "consumer_byte_rate"),
        (None, "loud", "producer_byte_rate"),
        ("alice", None, "request_percentage"),
    ]
    assert {row["kind"] for row in page["events"]} == {"throttle"}


@pytest.mark.parametrize(
    ("query", "count"),
    [("search=LOUD", 1), ("search=readers", 1), ("search=nobody", 0), ("page=1", 1)],
)
def test_in_6_clients_are_searched_and_paged(console: WebConsole, query: str, count: int) -> None:
    the_client(console)
    page: Clients = console.get(f"/api/clients?{query}", Clients)
    assert page["matching"] == count
    assert len(page["clients"]) == (0 if query == "page=1" else count)


def test_in_6_producers_with_their_open_transactions(console: WebConsole) -> None:
    by_name = {row["transactional_id"]: row for row in the_producers(console)}
    copier, loud = by_name["copier"], by_name[None]
    assert (copier["state"], copier["some"], copier["hangs"]) == ("Ongoing", ["copies-0"], False)
    assert copier["open"] == [{"partition": "copies-0", "start": 0}]
    assert copier["started"] and copier["written_at"]
    assert (loud["partitions"], loud["open"], loud["started"]) == (3, [], None)
    (found,) = the_producers(console, "?search=COPIER")
    assert found["id"] == copier["id"]


def test_in_6_a_wrong_sort_is_refused(console: WebConsole) -> None:
    answer = console.ask("/api/clients/producers?sort=lag")
    assert (answer.status, "id, transactional_id, written" in answer.json["error"]) == (400, True)


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme"), [(1400, "light"), (400, "dark")])
def test_in_6_the_pages_show_clients_and_what_they_cannot_know(
    browser: Browser, console: WebConsole, width: int, scheme: str
) -> None:
    with opened(browser, width, scheme) as page:
        page.goto(f"http://localhost:{console.port}/#/clients")
        row = page.get_by_role("row").filter(has_text="readers").first
        row.filter(has_text="throttle").wait_for()
        if width > 700:
            row.filter(has_text="producer_byte_rate 9.8 KiB/s").wait_for()
            row.filter(has_text="unless its user has one").wait_for()
        page.get_by_text("What is missing here, and why").click()
        page.get_by_text("consumers without a group").wait_for()
        beyond = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert beyond <= 0
        page.get_by_role("link", name="Producers").click()
        row = page.get_by_role("row").filter(has_text="copier")
        row.filter(has_text="copies-0, from offset 0").wait_for()
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
