"""IN-6: the page of `barnabas console` in front of a cluster with SASL_SSL and access control.

An administrator sees everything; another user is told which permission is missing, and never an
empty page without a reason. Every test fails if the browser reports an error.
"""

from __future__ import annotations

import json
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest

import barnabas
from barnabas.client import (
    AclBinding,
    AclEntry,
    Operation,
    Pattern,
    PermissionType,
    ResourceType,
    UserScramCredentialUpsertion,
)
from barnabas.client.admin.admin import NewTopic
from barnabas.client.sync.producer import SyncAdmin, SyncProducer
from barnabas.types import TopicPartition
from tests.kit.processes.chromium import opened
from tests.kit.processes.command_line import COMMAND
from tests.kit.processes.web_console import web_console

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

PASSWORD = "a password of the viewer"
LACKS = "lacks the permission Describe on the cluster"
RULE = AclBinding(
    Pattern(ResourceType.TOPIC, "orders"),
    AclEntry("User:viewer", "*", Operation.DESCRIBE, PermissionType.ALLOW),
)
HOSTILE = "<img src=x onerror=alert(1)>'\"&\u202e"
ODD_RULE = AclBinding(
    Pattern(ResourceType.GROUP, HOSTILE),
    AclEntry(f"User:{HOSTILE}", "*", Operation.READ, PermissionType.DENY),
)
PLACES = (
    *("", "events", "topics", "topics/orders", "groups", "transactions", "brokers", "security"),
    *("clients", "clients/producers"),
)


@pytest.fixture(scope="module")
def settings() -> Iterator[Mapping[str, Any]]:
    """An administrator's settings; the user `viewer` may only Describe one topic."""
    with barnabas.Cluster(3, secure=True) as cluster:
        settings = cluster.client_settings()
        with SyncAdmin(settings) as admin:
            admin.create_topics([NewTopic("orders", 2), NewTopic("private", 1)])
            with SyncProducer(settings) as producer:
                for number in range(20):
                    producer.send("orders", b"%d" % number, partition=number % 2)
            admin.alter_group_offsets("readers", {TopicPartition("orders", 0): 3})
            user = UserScramCredentialUpsertion("viewer", PASSWORD, settings["sasl.mechanism"])
            admin.alter_user_scram_credentials([user])
            admin.create_acls([RULE, ODD_RULE])
        yield settings


def console_of(settings: Mapping[str, Any], file: Path) -> Iterator[str]:
    others = {name: text for name, text in settings.items() if name != "bootstrap.servers"}
    file.write_text("".join(f"{name}={text}\n" for name, text in others.items()))
    servers = settings["bootstrap.servers"]
    with web_console(servers, "--command-config", str(file)) as running:
        yield f"http://localhost:{running.port}/#/"


@pytest.fixture(scope="module")
def admins(settings: Mapping[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    yield from console_of(settings, tmp_path_factory.mktemp("admin") / "client.properties")


@pytest.fixture(scope="module")
def viewers(settings: Mapping[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    login = settings["sasl.jaas.config"]
    _, _, _, password, *_ = login.split('"')
    own = login.replace(f'"{password}"', f'"{PASSWORD}"').replace('"admin"', '"viewer"')
    file = tmp_path_factory.mktemp("viewer") / "client.properties"
    yield from console_of({**settings, "sasl.jaas.config": own}, file)


def open_place(page: Page, place: str) -> None:
    page.goto(place)
    page.locator("h1").wait_for()
    page.locator(".waiting").wait_for(state="detached")


def test_an_administrator_sees_everything(browser: Browser, admins: str) -> None:
    with opened(browser) as page:
        for place in (*PLACES, "topics/orders/messages", "groups/readers", "brokers/1"):
            open_place(page, admins + place)
            assert page.locator("[role=alert]").all_inner_texts() == [], place
            assert page.get_by_text("lacks the permission").count() == 0, place
        open_place(page, admins + "topics/orders/messages")
        page.get_by_text("20 messages.").wait_for()
        open_place(page, admins + "groups")
        page.get_by_text("stopped", exact=True).first.wait_for()
        open_place(page, admins + "security")
        page.get_by_role("row").filter(has_text="User:viewer").first.wait_for()
        page.get_by_role("row").filter(has_text="SCRAM-SHA-512").first.wait_for()


def test_another_user_is_told_which_permission_is_missing(browser: Browser, viewers: str) -> None:
    with opened(browser) as page:
        for place in PLACES:
            open_place(page, viewers + place)
            page.get_by_text(LACKS).first.wait_for()
            assert page.locator("[role=alert]").all_inner_texts() == [], place
        open_place(page, viewers + "topics")
        page.get_by_role("link", name="orders").wait_for()
        assert page.get_by_role("link", name="private").count() == 0
        open_place(page, viewers + "topics/orders")
        page.get_by_text("lacks the permission DescribeConfigs").wait_for()
        page.get_by_text("not known whether partitions are being reassigned").wait_for()
        page.get_by_text("show them only to a user who may Describe the cluster").wait_for()
        open_place(page, viewers + "security")
        page.get_by_text(f"rules: the console's user {LACKS}").wait_for()


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("topics/private", "or this user may not Describe it"),
        ("groups/readers", "or this user may not Describe it"),
    ],
)
def test_what_may_not_be_seen_is_not_said_to_be_missing(
    viewers: str, place: str, reason: str
) -> None:
    address = viewers.removesuffix("#/")
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"{address}api/{place}")
    assert (refused.value.code, reason in refused.value.read().decode()) == (404, True)


def test_messages_say_that_they_need_read(viewers: str) -> None:
    address = viewers.removesuffix("#/")
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"{address}api/topics/orders/messages")
    text = refused.value.read().decode()
    assert (refused.value.code, "lacks the permission Read on the topic" in text) == (403, True)


def asked(place: str, query: Mapping[str, str]) -> Any:
    address = f"{place.removesuffix('#/')}api/security/explain?{urlencode(query)}"
    with urllib.request.urlopen(address) as response:
        return json.load(response)


@pytest.mark.parametrize("operation", ["Describe", "Write"])
def test_the_page_explains_like_the_command(
    settings: Mapping[str, Any], admins: str, tmp_path: Path, operation: str
) -> None:
    file = tmp_path / "client.properties"
    file.write_text("".join(f"{name}={text}\n" for name, text in settings.items()))
    words = ["--command-config", str(file), "--user", "viewer", "--operation", operation]
    command = [COMMAND, "acls", "explain", *words, "--topic", "orders", "--host", "10.0.0.7"]
    said = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    query = {"principal": "viewer", "operation": operation, "type": "Topic", "name": "orders"}
    found = asked(admins, {**query, "host": "10.0.0.7"})
    assert found["error"] == ""
    assert (found["allowed"], found["lines"]) == (
        operation == "Describe",
        said.splitlines(),
    )


def test_who_may_not_see_the_rules_is_told_so(viewers: str) -> None:
    query = {"principal": "alice", "operation": "Read", "type": "Topic", "name": "orders"}
    found = asked(viewers, query)
    assert (found["lines"], LACKS in found["error"]) == ([], True)


def test_hostile_names_are_shown_as_they_are(browser: Browser, admins: str) -> None:
    with opened(browser) as page:
        open_place(page, admins + "security?sort=resource")
        row = page.get_by_role("row").filter(has_text="<img src=x")
        row.first.wait_for()
        assert row.first.inner_text().count(HOSTILE) == 2
        page.get_by_label("User", exact=True).fill(f"User:{HOSTILE}")
        page.get_by_label("Type of resource").select_option("Group")
        page.get_by_label("Operation").select_option("Read")
        page.get_by_label("Name of the resource").fill(HOSTILE)
        page.get_by_role("button", name="Explain").click()
        page.get_by_text(f"Rule: deny User:{HOSTILE} Read on group {HOSTILE}").wait_for()
        page.locator("code.command", has_text="barnabas acls delete").wait_for()
        page.reload()  # the question is part of the address
        page.get_by_text(f"Denied: User:{HOSTILE}, Read on group {HOSTILE}").wait_for()
