"""IN-6: `barnabas console --write` over HTTP: each action is previewed, and applied once."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest

import barnabas
from barnabas.client.admin.admin import TOPIC, ConfigResource, NewTopic
from barnabas.client.offsets import EARLIEST
from barnabas.client.sync.consumer import SyncConsumer
from barnabas.client.sync.producer import SyncAdmin, SyncProducer
from barnabas.console import shapes
from barnabas.console.writing.catalogue import ACTIONS
from barnabas.security.acl_binding import (
    AclBinding,
    AclEntry,
    Operation,
    Pattern,
    PermissionType,
    ResourceType,
)
from barnabas.testing import Broker
from barnabas.types import TopicPartition
from tests.kit.console_actions import apply, error_of, make, preview
from tests.kit.processes.web_console import WebConsole, web_console

CREATE = {"topic": "wanted", "partitions": 2, "replication_factor": 1}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with barnabas.Broker() as running:
        with SyncAdmin(running.bootstrap_servers) as admin:
            admin.create_topics([NewTopic("orders", 2), NewTopic("other", 1)])
            with SyncProducer(running.bootstrap_servers) as producer:
                for number in range(20):
                    producer.send("orders", b"%d" % number, partition=number % 2)
            admin.alter_group_offsets("readers", {TopicPartition("orders", 0): 5})
        yield running


@pytest.fixture(scope="module")
def admin(broker: Broker) -> Iterator[SyncAdmin]:
    with SyncAdmin(broker.bootstrap_servers) as running:
        yield running


@pytest.fixture(scope="module")
def console(broker: Broker) -> Iterator[WebConsole]:
    with web_console(broker.bootstrap_servers, "--write") as running:
        yield running


def test_a_topic_is_created_grows_and_is_deleted(console: WebConsole, admin: SyncAdmin) -> None:
    configs = {"retention.ms": "1000"}
    assert make(console, "create-topic", **CREATE, configs=configs) == [
        ("partitions", None, "2"),
        ("replication factor", None, "1"),
        ("config retention.ms", None, "1000"),
    ]
    (topic,) = admin.describe_topics(["wanted"])
    assert len(topic.partitions) == 2
    assert make(console, "add-partitions", topic="wanted", partitions=4) == [
        ("partitions", "2", "4")
    ]
    assert len(admin.describe_topics(["wanted"])[0].partitions) == 4
    made = make(console, "delete-topic", topic="wanted", confirm="wanted")
    assert made == [("topic wanted", "4 partitions, 1 replica of each", None)]
    assert "wanted" not in admin.list_topics()


def test_configs_are_set_and_taken_back(console: WebConsole, admin: SyncAdmin) -> None:
    def value() -> str | None:
        entries = admin.describe_configs(ConfigResource(TOPIC, "other"), ["retention.ms"])
        return entries[0].value

    def shown() -> str | None:
        page: shapes.TopicPage = console.get("/api/topics/other", shapes.TopicPage)
        return {row["name"]: row["value"] for row in page["configs"] or ()}["retention.ms"]

    default = value()
    assert shown() == default
    where = {"of": "topic", "topic": "other"}
    assert make(console, "alter-configs", **where, set={"retention.ms": "7000"}) == [
        ("retention.ms", f"{default} (default)", "7000 (dynamic topic)")
    ]
    assert value() == "7000"
    assert shown() == "7000", "the page shows it at once"
    assert preview(console, "alter-configs", **where, set={"retention.ms": "7000"}) == {
        "title": "alter configs of topic other",
        "changes": [],
        "sentences": ["retention.ms is already 7000 (dynamic topic)."],
        "warnings": [],
        "token": "",
        "seconds": 300.0,
    }
    assert make(console, "alter-configs", **where, delete=["retention.ms"]) == [
        ("retention.ms", "7000 (dynamic topic)", "(the default)")
    ]
    assert value() == default


def test_a_config_of_all_brokers_is_set(console: WebConsole) -> None:
    (change,) = make(console, "alter-configs", of="all brokers", set={"log.cleaner.threads": "2"})
    assert change == ("log.cleaner.threads", None, "2 (dynamic default broker)")


@pytest.mark.parametrize(
    ("fields", "offset"),
    [
        ({"to": "earliest"}, 0),
        ({"to": "latest"}, 10),
        ({"to": "shift", "shift": -3, "topics": ["orders:0"]}, 7),
        ({"to": "offset", "offset": 4}, 4),
        ({"to": "time", "time": "2020-01-01T00:00"}, 0),
    ],
)
def test_offsets_of_a_group_are_reset(
    console: WebConsole, admin: SyncAdmin, fields: dict[str, Any], offset: int
) -> None:
    name = TopicPartition("orders", 0)
    before = admin.list_group_offsets("readers")[name].offset
    made = make(console, "reset-offsets", group="readers", **fields)
    assert made == [("orders-0", str(before), str(offset))]
    assert admin.list_group_offsets("readers")[name].offset == offset


def test_a_reset_to_the_end_is_to_the_end_of_the_preview(
    broker: Broker, console: WebConsole, admin: SyncAdmin
) -> None:
    """Records that arrive after the preview are not skipped."""
    admin.alter_group_offsets("late", {TopicPartition("orders", 1): 2})
    found = preview(console, "reset-offsets", group="late", to="latest")
    with SyncProducer(broker.bootstrap_servers) as producer:
        producer.send("orders", b"new", partition=1)
    assert apply(console, "reset-offsets", found["token"]).status == 200
    assert admin.list_group_offsets("late")[TopicPartition("orders", 1)].offset == 10


def test_a_group_with_members_is_not_reset(broker: Broker, console: WebConsole) -> None:
    with SyncConsumer(broker.bootstrap_servers, group_id="busy") as consumer:
        consumer.subscribe(["orders"])
        while not consumer.assignment():
            consumer.poll(1_000)
        answer = console.post(
            "/api/actions/reset-offsets/preview", {"group": "busy", "to": "earliest"}
        )
        assert "with 1 member: offsets can only be reset while it has none" in error_of(answer, 409)


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        ({"form": "text", "text": "grün"}, "grün".encode()),
        ({"form": "hex", "text": "00 ff"}, b"\x00\xff"),
        ({"form": "base64", "text": "AP8="}, b"\x00\xff"),
        ({"form": "null"}, None),
    ],
)
def test_a_record_is_produced(
    broker: Broker, console: WebConsole, value: dict[str, str], stored: bytes | None
) -> None:
    headers = [{"name": "h", "value": value}]
    key = {"form": "text", "text": "k"}
    fields = {"topic": "other", "partition": 0, "key": key, "value": value, "headers": headers}
    found = preview(console, "produce-record", **fields)
    answer = apply(console, "produce-record", found["token"])
    assert answer.status == 200, answer
    offset = int(answer.json["sentences"][0].split()[5])
    with SyncConsumer(broker.bootstrap_servers) as consumer:
        consumer.assign([TopicPartition("other", 0)])
        consumer.seek(TopicPartition("other", 0), offset)
        (record,) = consumer.poll(10_000)
    assert (record.key, record.value, list(record.headers)) == (b"k", stored, [("h", stored)])


def test_records_are_deleted_up_to_the_end_of_the_preview(
    broker: Broker, console: WebConsole, admin: SyncAdmin
) -> None:
    admin.create_topics([NewTopic("long", 2)])
    names = [TopicPartition("long", 0), TopicPartition("long", 1)]
    with SyncProducer(broker.bootstrap_servers) as producer:
        for number in range(8):
            producer.send("long", b"v", partition=number % 2)
        producer.flush()
        fields: dict[str, Any] = {"topic": "long", "confirm": "long"}
        made = make(console, "delete-records", **fields, partition=0, before=3)
        assert made == [("long-0", "starts at 0", "starts at 3")]
        found = preview(console, "delete-records", **fields)
        assert [each["what"] for each in found["changes"]] == ["long-0", "long-1"]
        producer.send("long", b"new", partition=1)
    assert apply(console, "delete-records", found["token"]).status == 200
    starts = admin.list_offsets(dict.fromkeys(names, EARLIEST))
    assert [starts[name].offset for name in names] == [4, 4]
    assert preview(console, "delete-records", **fields, partition=0, before=2)["token"] == ""


# ---- what is refused ----


def test_without_write_nothing_is_possible(broker: Broker, admin: SyncAdmin) -> None:
    with web_console(broker.bootstrap_servers) as reading:
        assert reading.get("/api/actions", shapes.Actions) == {
            "enabled": False,
            "secret": "",
            "names": [],
        }
        for name in ACTIONS:
            for step in ("preview", "apply"):
                answer = reading.post(f"/api/actions/{name}/{step}", CREATE)
                assert "the console only reads" in error_of(answer, 405)
                assert reading.ask(f"/api/actions/{name}/{step}").status == 404
    assert "wanted" not in admin.list_topics()


@pytest.mark.parametrize(
    ("headers", "status", "part"),
    [
        ({"Content_Type": "text/plain"}, 415, "application/json"),
        ({"Content_Type": "application/x-www-form-urlencoded"}, 415, "application/json"),
        ({"Content_Type": None}, 415, "application/json"),
        ({"Origin": None}, 403, "Origin"),
        ({"Origin": "null"}, 403, "Origin"),
        ({"Origin": "http://evil.example"}, 403, "Origin"),
        ({"Origin": "http://127.0.0.1:1"}, 403, "Origin"),
        ({"Origin": "http://[", "Host": "["}, 403, ""),
        ({"Host": "evil.example", "Origin": "http://evil.example"}, 403, "evil.example"),
        ({"Sec_Fetch_Site": "cross-site"}, 403, "another site"),
        ({"Sec_Fetch_Site": "same-site"}, 403, "another site"),
        ({"X_Barnabas_Console": None}, 403, "load it again"),
        ({"X_Barnabas_Console": "guessed"}, 403, "load it again"),
        ({"Content_Length": "999999"}, 413, "999999"),
    ],
)
def test_only_the_page_itself_may_change_anything(
    console: WebConsole, headers: dict[str, str | None], status: int, part: str
) -> None:
    answer = console.post("/api/actions/create-topic/preview", CREATE, **headers)
    assert part in error_of(answer, status)


def test_a_body_has_a_length_and_a_bound(console: WebConsole) -> None:
    answer = console.post("/api/actions/create-topic/preview", b"x" * 300_000)
    assert "at most 262144" in error_of(answer, 413)
    assert console.post("/api/overview", {}).status == 405
    assert console.ask("/api/actions/create-topic/preview").status == 405


@pytest.mark.parametrize(
    ("name", "fields", "part"),
    [
        ("create-topic", b"{", "not JSON"),
        ("create-topic", b"[" * 100_000, "not JSON"),
        ("create-topic", b"\xff", "not JSON"),
        ("create-topic", [], "not an object"),
        ("create-topic", {}, "topic: it is missing"),
        ("create-topic", {"topic": 1}, "topic: give a text, not 1"),
        ("create-topic", {"topic": " "}, "topic: give its name"),
        ("create-topic", {"topic": "x" * 257}, "topic: at most 256"),
        ("create-topic", {"topic": "\ud800"}, "half a character"),
        ("create-topic", {**CREATE, "partitions": 0}, "partitions: give a whole number from 1"),
        ("create-topic", {**CREATE, "partitions": True}, "partitions: give a whole number"),
        ("create-topic", {**CREATE, "configs": []}, "configs: give an object"),
        ("create-topic", {**CREATE, "configs": {"a": 1}}, 'configs: "a" needs a name and a text'),
        ("create-topic", {**CREATE, "evil": 1}, "evil: there is no such field"),
        ("add-partitions", {"topic": "orders", "partitions": 2}, "can only grow"),
        ("delete-topic", {"topic": "orders", "confirm": "order"}, "type the name of the topic"),
        ("delete-records", {"topic": "orders", "confirm": "x"}, "type the name of the topic"),
        ("alter-configs", {"of": "topic", "topic": "orders"}, "name a config"),
        ("alter-configs", {"of": "table"}, "of: give one of topic, broker, all brokers"),
        ("reset-offsets", {"group": "readers", "to": "middle"}, "to: give one of earliest"),
        ("reset-offsets", {"group": "readers", "to": "time", "time": "soon"}, "time: soon"),
        ("reset-offsets", {"group": "readers", "to": "latest", "topics": [":"]}, "topics:"),
        (
            "produce-record",
            {"topic": "other", "key": {"form": "null"}, "value": {"form": "hex", "text": "0"}},
            "value: this is not hex",
        ),
        (
            "produce-record",
            {"topic": "other", "key": {"form": "null"}, "value": {"form": "base64", "text": "#"}},
            "value: this is not base64",
        ),
        (
            "produce-record",
            {"topic": "other", "partition": 1, "key": {"form": "null"}, "value": {"form": "null"}},
            "partitions 0 to 0",
        ),
    ],
)
def test_bad_fields_are_named(console: WebConsole, name: str, fields: Any, part: str) -> None:
    assert part in error_of(console.post(f"/api/actions/{name}/preview", fields), 400)


@pytest.mark.parametrize(
    ("name", "fields", "status", "part"),
    [
        ("create-topic", {**CREATE, "topic": "orders"}, 409, "'orders' already exists"),
        ("create-topic", {**CREATE, "topic": "a/b"}, 422, "INVALID_TOPIC"),
        ("create-topic", {**CREATE, "topic": "a" * 250}, 422, "INVALID_TOPIC"),
        ("create-topic", {**CREATE, "replication_factor": 9}, 422, "INVALID_REPLICATION_FACTOR"),
        ("create-topic", {**CREATE, "configs": {"no.such": "1"}}, 422, "INVALID_CONFIG"),
        ("delete-topic", {"topic": "nope", "confirm": "nope"}, 404, "nope"),
        (
            "alter-configs",
            {"of": "topic", "topic": "orders", "set": {"retention.ms": "soon"}},
            422,
            "INVALID_CONFIG",
        ),
        ("alter-configs", {"of": "broker", "broker": 77, "set": {"a": "b"}}, 422, "77"),
        ("reset-offsets", {"group": "nope", "to": "latest"}, 404, "no group 'nope'"),
        (
            "reset-offsets",
            {"group": "readers", "to": "latest", "topics": ["x"]},
            409,
            "topic x does not exist",
        ),
        ("elect-leaders", {"of": "topic", "topic": "nope"}, 404, "nope"),
        ("no-such-action", {}, 404, "no action"),
    ],
)
def test_what_kafka_refuses_is_told(
    console: WebConsole, name: str, fields: Any, status: int, part: str
) -> None:
    assert part in error_of(console.post(f"/api/actions/{name}/preview", fields), status)


def test_a_token_is_used_once_and_cannot_be_changed(console: WebConsole, admin: SyncAdmin) -> None:
    found = preview(console, "create-topic", **{**CREATE, "topic": "once"})
    token = found["token"]
    number, _, proof = token.partition(".")
    for bad in (f"{number}.{proof[::-1]}", number, f"{number}.", f"{number}.ü"):
        assert "does not belong" in error_of(apply(console, "create-topic", bad), 403)
    other = preview(console, "create-topic", **{**CREATE, "topic": "another"})["token"]
    swapped = f"{number}.{other.partition('.')[2]}"
    assert "does not belong" in error_of(apply(console, "create-topic", swapped), 403)
    assert "once" not in admin.list_topics()
    assert apply(console, "create-topic", token).status == 200
    assert "no such preview" in error_of(apply(console, "create-topic", token), 410)
    assert "no such preview" in error_of(apply(console, "create-topic", "made.up"), 410)
    assert error_of(apply(console, "create-topic", ""), 410)


def test_a_token_is_only_for_its_own_action(console: WebConsole, admin: SyncAdmin) -> None:
    token = preview(console, "delete-topic", topic="other", confirm="other")["token"]
    assert "'delete-topic'" in error_of(apply(console, "add-partitions", token), 403)
    assert "other" in admin.list_topics()


def test_a_change_since_the_preview_is_refused(console: WebConsole, admin: SyncAdmin) -> None:
    admin.create_topics([NewTopic("moving", 1)])
    grows = preview(console, "add-partitions", topic="moving", partitions=5)
    gone = preview(console, "delete-topic", topic="moving", confirm="moving")
    where = {"of": "topic", "topic": "moving"}
    config = preview(console, "alter-configs", **where, set={"retention.ms": "5"})
    admin.create_partitions("moving", 2)
    told = error_of(apply(console, "add-partitions", grows["token"]), 409)
    assert "partitions was 1 and is now 2" in told
    admin.alter_configs(ConfigResource(TOPIC, "moving"), {"retention.ms": "6"})
    told = error_of(apply(console, "alter-configs", config["token"]), 409)
    assert "is now 6 (dynamic topic)" in told
    admin.delete_topics("moving")
    admin.create_topics([NewTopic("moving", 1)])
    told = error_of(apply(console, "delete-topic", gone["token"]), 409)
    assert "nothing was done" in told
    admin.alter_group_offsets("moved", {TopicPartition("orders", 0): 1})
    reset = preview(console, "reset-offsets", group="moved", to="latest")
    admin.alter_group_offsets("moved", {TopicPartition("orders", 0): 2})
    told = error_of(apply(console, "reset-offsets", reset["token"]), 409)
    assert "orders-0 was 1 and is now 2" in told
    assert admin.list_group_offsets("moved")[TopicPartition("orders", 0)].offset == 2
    assert "moving" in admin.list_topics()


def test_each_action_is_logged_in_one_line(broker: Broker) -> None:
    with web_console(broker.bootstrap_servers, "--write") as running:
        make(running, "create-topic", **{**CREATE, "topic": "logged"})
        running.post("/api/actions/create-topic/preview", {"topic": "a\nb\x1b[2J\u202e"})
        running.post("/api/actions/create-topic/apply", {"token": "x"}, Origin=None)
        running.stop()
        assert running.process.stderr is not None
        lines = running.process.stderr.read().decode().splitlines()
    assert [line.split(" barnabas console: 127.0.0.1:")[1].split(" ", 1)[1] for line in lines] == [
        "preview create-topic, create topic logged: done",
        "apply create-topic, create topic logged: done",
        lines[2].split(" ", 4)[4],
        "apply create-topic: refused, 403 the Origin is not this console: only its own page may "
        "change anything",
    ]
    assert all(line.isprintable() for line in lines)


@pytest.fixture(scope="module")
def guarded() -> Iterator[WebConsole]:
    """A console whose user may only see the topic `guarded`, and read as the group `readers`."""
    config = {
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
    }
    with barnabas.Broker(config=config) as broker:
        with SyncAdmin(broker.bootstrap_servers) as admin:
            admin.create_topics([NewTopic("guarded", 1)])
            with SyncProducer(broker.bootstrap_servers) as producer:
                producer.send("guarded", b"v")
            admin.alter_group_offsets("readers", {TopicPartition("guarded", 0): 0})
            entry = AclEntry("User:ANONYMOUS", "*", Operation.DESCRIBE, PermissionType.ALLOW)
            topic = Pattern(ResourceType.TOPIC, "guarded")
            group = Pattern(ResourceType.GROUP, "readers")
            seen = AclBinding(topic, entry._replace(operation=Operation.DESCRIBE_CONFIGS))
            admin.create_acls([AclBinding(topic, entry), seen, AclBinding(group, entry)])
        with web_console(broker.bootstrap_servers, "--write") as running:
            yield running


DENIED: list[tuple[str, dict[str, Any], str]] = [
    ("add-partitions", {"partitions": 3}, "Alter on the topic 'guarded'"),
    ("delete-topic", {"confirm": "guarded"}, "Delete on the topic 'guarded'"),
    ("alter-configs", {"of": "topic", "set": {"retention.ms": "5"}}, "AlterConfigs and"),
    (
        "produce-record",
        {"key": {"form": "null"}, "value": {"form": "text", "text": "v"}},
        "Write and Describe on the topic 'guarded'",
    ),
]


@pytest.mark.parametrize(("name", "fields", "permission"), DENIED)
def test_what_the_rules_deny_names_the_permission(
    guarded: WebConsole, name: str, fields: dict[str, Any], permission: str
) -> None:
    answer = guarded.post(f"/api/actions/{name}/preview", {"topic": "guarded", **fields})
    if answer.status == 200:  # only the change itself is denied
        answer = apply(guarded, name, answer.json["token"])
    told = error_of(answer, 403)
    assert "AUTHORIZATION_FAILED" in told
    assert f"The user of --command-config needs the permission {permission}" in told


def test_a_group_that_may_only_be_seen_is_not_reset(guarded: WebConsole) -> None:
    token = preview(guarded, "reset-offsets", group="readers", to="latest")["token"]
    told = error_of(apply(guarded, "reset-offsets", token), 403)
    assert "Read on the group 'readers' and on its topics" in told


def test_a_body_that_ends_early_is_refused(console: WebConsole) -> None:
    """It is only noticed by the next request, which finds a console that still answers."""
    given = {
        "Host": f"127.0.0.1:{console.port}",
        "Origin": f"http://127.0.0.1:{console.port}",
        "Content-Type": "application/json",
        "X-Barnabas-Console": console.secret,
        "Content-Length": "1000",
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in given.items())
    with socket.create_connection(("127.0.0.1", console.port)) as sock:
        path = "/api/actions/create-topic/preview"
        sock.sendall(f"POST {path} HTTP/1.1\r\n{lines}\r\n{{".encode())
    assert preview(console, "create-topic", **{**CREATE, "topic": "after"})["token"]
