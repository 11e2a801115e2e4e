"""IN-6: of a thousand groups, each gets its lag in its turn, and the page says how old it is."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

import barnabas
from barnabas.client.admin.admin import NewTopic
from barnabas.client.sync.producer import SyncAdmin, SyncProducer
from barnabas.console import shapes
from barnabas.types import TopicPartition
from tests.kit.processes.web_console import WebConsole, web_console
from tests.kit.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

GROUPS = 1_000
PATIENCE_S = 300.0


@pytest.fixture(scope="module")
def console() -> Iterator[WebConsole]:
    with barnabas.Broker() as broker:
        servers = broker.bootstrap_servers
        with SyncAdmin(servers) as admin:
            admin.create_topics(NewTopic("orders", 1))
            with SyncProducer(servers) as producer:
                for number in range(20):
                    producer.send("orders", b"%d" % number)
            for number in range(GROUPS):
                read = {TopicPartition("orders", 0): number % 20}
                admin.alter_group_offsets(f"group-{number:04d}", read)
        with web_console(servers) as running:
            yield running


def all_rows(console: WebConsole) -> dict[str, shapes.GroupRow]:
    found: dict[str, shapes.GroupRow] = {}
    for number in range(GROUPS // 100):
        page: shapes.Groups = console.get(f"/api/groups?page={number}", shapes.Groups)
        assert page["matching"] in (0, GROUPS)  # 0: they are not listed yet
        found |= {row["id"]: row for row in page["groups"]}
    return found


def test_each_of_a_thousand_groups_gets_its_lag(console: WebConsole) -> None:
    began_s = time.monotonic()
    rows: dict[str, shapes.GroupRow] = {}

    def have_all_a_lag() -> bool:
        rows.update(all_rows(console))
        return len(rows) == GROUPS and all(row["lag"] is not None for row in rows.values())

    wait_until(have_all_a_lag, PATIENCE_S)
    print(f"{GROUPS} groups have their lag after {time.monotonic() - began_s:.0f} s")
    wrong = {
        row["id"]: row["lag"]
        for row in rows.values()
        if row["lag"] != 20 - int(row["id"][-4:]) % 20 or row["looked_at"] is None
    }
    assert wrong == {}
    overview: shapes.Overview = console.get("/api/overview", shapes.Overview)
    assert overview["groups"] == GROUPS


def test_a_group_whose_page_is_open_is_looked_at_again_and_again(console: WebConsole) -> None:
    looks: set[int | None] = set()

    def has_three_looks() -> bool:
        page: shapes.GroupPage = console.get("/api/groups/group-0777", shapes.GroupPage)
        looks.add(page["group"]["looked_at"])
        return len(looks - {None}) >= 3

    wait_until(has_three_looks, PATIENCE_S)


def test_the_figures_of_each_group_are_renewed(console: WebConsole) -> None:
    before = {group: row["looked_at"] or 0 for group, row in all_rows(console).items()}

    def are_renewed() -> bool:
        now = all_rows(console)
        return all((now[group]["looked_at"] or 0) > at for group, at in before.items())

    wait_until(are_renewed, PATIENCE_S)
