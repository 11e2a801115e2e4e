"""`barnabas console`: each address of a real process, in front of real brokers."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from signal import SIGINT, SIGTERM, Signals
from typing import Any, TypedDict
from urllib.parse import quote

import pytest

import barnabas
from barnabas.client.admin.admin import NewTopic
from barnabas.client.sync.producer import SyncAdmin, SyncProducer
from barnabas.console import shapes
from barnabas.testing import Broker, Cluster
from barnabas.types import TopicPartition
from tests.kit.processes.broker_process import free_port
from tests.kit.processes.command_line import COMMAND
from tests.kit.processes.web_console import WebConsole, web_console
from tests.kit.shapes import misfits
from tests.kit.waiting import wait_until

HOSTILE = "a/b c?d#e%2F<script>'\"&ü\u202e.."
BINARY = bytes(range(256))


class Brokers(TypedDict):
    brokers: list[shapes.BrokerRow]


class Transactions(TypedDict):
    transactions: list[shapes.TransactionRow]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with barnabas.Broker() as running:
        with SyncAdmin(running.bootstrap_servers) as admin:
            admin.create_topics([NewTopic("orders", 3), NewTopic("odd", 1), NewTopic("new", 1)])
            with SyncProducer(running.bootstrap_servers) as producer:
                for number in range(60):
                    value = b'{"number": %d}' % number
                    producer.send("orders", value, key=b"%d" % number, partition=number % 3)
                producer.send("odd", None, key=b"deleted", headers=[("h", None), ("b", BINARY)])
                producer.send("odd", BINARY)
                producer.send("odd", b"\xc3\xa9" * 5_000)
            admin.alter_group_offsets(HOSTILE, {TopicPartition("orders", 1): 5})
        yield running


@pytest.fixture(scope="module")
def console(broker: Broker) -> Iterator[WebConsole]:
    with web_console(broker.bootstrap_servers) as running:
        yield running


def test_the_overview_and_the_lists_have_their_shapes(console: WebConsole) -> None:
    overview: shapes.Overview = console.get("/api/overview", shapes.Overview)
    assert (overview["brokers"], overview["leaderless"], overview["error"]) == (1, 0, "")
    assert overview["events"] and overview["looked_at"]
    brokers: Brokers = console.get("/api/brokers", Brokers)
    assert [row["is_controller"] for row in brokers["brokers"]] == [True]
    own = brokers["brokers"][0]["id"]
    page: shapes.BrokerPage = console.get(f"/api/brokers/{own}", shapes.BrokerPage)
    configs = {row["name"]: row for row in page["configs"] or ()}
    assert configs["num.partitions"]["source"] in ("default", "static broker")
    topics: shapes.Topics = console.get("/api/topics?sort=records&descending=1", shapes.Topics)
    assert [(row["name"], row["records"]) for row in topics["topics"][:2]] == [
        ("orders", 60),
        ("odd", 3),
    ]
    assert console.get("/api/topics?search=ORD&internal=1", shapes.Topics)["matching"] == 1
    events: shapes.Events = console.get("/api/events?topic=orders&limit=1", shapes.Events)
    assert [row["topic"] for row in events["events"]] == ["orders"]
    assert (events["silent"], "isr-shrink" in events["kinds"]) == ([], True)


def test_a_topic_with_its_partitions_replicas_and_configs(console: WebConsole) -> None:
    page: shapes.TopicPage = console.get("/api/topics/orders", shapes.TopicPage)
    assert [row["high_watermark"] for row in page["partitions"]] == [20, 20, 20]
    assert [each["end"] for row in page["partitions"] for each in row["replicas"]] == [20] * 3
    assert page["configs"] and page["events"]


def test_messages_of_every_kind_are_shown_safely(console: WebConsole) -> None:
    found: shapes.Messages = console.get("/api/topics/odd/messages", shapes.Messages)
    deleted, binary, long = found["messages"]
    assert deleted["value"] == {"text": None, "form": "null", "size": 0, "is_cut": False}
    assert [each["value"]["form"] for each in deleted["headers"]] == ["null", "hex"]
    assert (binary["value"]["text"], binary["value"]["form"]) == (BINARY.hex(), "hex")
    assert (long["value"]["text"], long["value"]["is_cut"]) == ("é" * 2_048, True)
    whole: shapes.Message = console.get("/api/topics/odd/messages/0/2", shapes.Message)
    assert (whole["value"]["text"], whole["value"]["is_cut"]) == ("é" * 5_000, False)


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ("from=latest&limit=2&partition=0", [54, 57]),
        ("from=earliest&limit=2&partition=1", [1, 4]),
        ("from=18&partition=2", [56, 59]),
        ("from=earliest&search=5%7D", [5, 15, 25, 35, 45, 55]),
        ("search=5%7D&limit=1&partition=1", [55]),
        ("from=time&at=0&limit=1&partition=0", [0]),
        ("from=time&at=9999999999999", []),
    ],
)
def test_messages_are_selected(console: WebConsole, query: str, numbers: list[int]) -> None:
    path = f"/api/topics/orders/messages?{query}"
    found: shapes.Messages = console.get(path, shapes.Messages)
    shown = sorted(int(each["key"]["text"] or -1) for each in found["messages"])
    assert shown == numbers and found["is_complete"]


def test_reading_on_from_next_gives_each_record_once(console: WebConsole) -> None:
    at, seen = "0", []
    while at != "20":
        query = f"from={at}&limit=7&partition=1"
        found: shapes.Messages = console.get(
            f"/api/topics/orders/messages?{query}", shapes.Messages
        )
        seen += [each["offset"] for each in found["messages"]]
        at = str(found["next"]["1"])
    assert seen == list(range(20))


def page_by_page(console: WebConsole, start: str, side: str, query: str) -> list[list[int]]:
    """Read pages of all partitions until there is nothing older or newer."""
    pages: list[list[int]] = []
    where = f"from={start}"
    while True:
        path = f"/api/topics/orders/messages?{where}&{query}"
        found: shapes.Messages = console.get(path, shapes.Messages)
        if start == "earliest" and not found["messages"]:
            return pages
        pages.append([int(each["key"]["text"] or -1) for each in found["messages"]])
        offsets = found["previous"] if side == "before" else found["next"]
        if not offsets:
            return pages
        listed = ".".join(str(offsets[str(partition)]) for partition in range(3))
        where = f"from={side}&offsets={listed}"


def test_older_messages_of_all_partitions_are_read_page_by_page(console: WebConsole) -> None:
    pages = page_by_page(console, "latest", "before", "limit=7")
    assert [len(page) for page in pages] == [7] * 8 + [4]
    read = [number for page in reversed(pages) for number in page]
    assert sorted(read) == list(range(60))
    found = page_by_page(console, "latest", "before", "limit=2&search=5%7D")
    assert sorted(number for page in found for number in page) == [5, 15, 25, 35, 45, 55]


def test_newer_messages_of_all_partitions_are_read_page_by_page(console: WebConsole) -> None:
    pages = page_by_page(console, "earliest", "after", "limit=7")
    assert sorted(number for page in pages for number in page) == list(range(60))


def test_a_group_with_a_hostile_name_and_its_lag(console: WebConsole) -> None:
    def rows() -> list[shapes.GroupRow]:
        found: shapes.Groups = console.get("/api/groups", shapes.Groups)
        return found["groups"]

    wait_until(lambda: [row["id"] for row in rows() if row["members"] is not None] == [HOSTILE])
    page: shapes.GroupPage = console.get(f"/api/groups/{quote(HOSTILE, safe='')}", shapes.GroupPage)
    assert (page["group"]["verdict"], page["group"]["lag"]) == ("stopped", 15)
    assert [row["committed"] for row in page["partitions"]] == [5]
    overview: shapes.Overview = console.get("/api/overview", shapes.Overview)
    assert [each["link"] for each in overview["findings"]] == [
        f"#/groups/{quote(HOSTILE, safe='')}"
    ]


def test_transactions_and_security_have_their_shapes(console: WebConsole) -> None:
    assert console.get("/api/transactions", Transactions) == {"transactions": []}
    security: shapes.Security = console.get("/api/security", shapes.Security)
    assert "rules: the brokers have no authorizer and therefore no rules" in security["error"]
    assert security["acls"] == []
    path = "/api/security/explain?principal=alice&operation=Read&type=Topic&name=orders"
    found: shapes.AccessExplanation = console.get(path, shapes.AccessExplanation)
    assert "the brokers have no authorizer" in found["error"]
    assert (found["allowed"], found["lines"], found["rule"]) == (None, [], None)


@pytest.mark.parametrize(
    ("path", "status", "part"),
    [
        ("/api/topics/nope", 404, "no topic 'nope'"),
        ("/api/security/explain", 400, "principal: name a user"),
        ("/api/topics/..%2F..%2Fetc", 404, "nothing at"),
        ("/api/topics/orders/messages?limit=0", 400, "limit=0"),
        ("/api/topics/orders/messages?from=yesterday", 400, "from=yesterday"),
        ("/api/topics/orders/messages?from=time", 400, "at:"),
        ("/api/topics/orders/messages?from=before", 400, "offsets: needs an offset"),
        ("/api/topics/orders/messages?from=after&offsets=1.x", 400, "offsets=x"),
        ("/api/topics/orders/messages?partition=3", 404, "partitions 0 to 2"),
        ("/api/topics/orders/messages/0/20", 404, "no record at offset 20"),
        ("/api/topics?page=-1", 400, "page=-1"),
        ("/api/topics?page=%C2%B2", 400, "page="),
        ("/api/groups?sort=rate", 400, "id, lag, seconds, verdict"),
        ("/api/groups/nope", 404, "no group 'nope'"),
        ("/api/brokers/9999", 404, "broker 9999"),
        ("/api/events?since=tomorrow", 400, "since=tomorrow"),
        ("/api/events?kind=" + "x" * 20_000, 400, "the address has"),
        ("/api/nothing", 404, "nothing at"),
        ("/static/../command.py", 404, "no file"),
        ("/static/%2e%2e/command.py", 404, "no file"),
        ("/static//etc/passwd", 404, "no file"),
    ],
)
def test_what_cannot_be_answered_is_a_problem(
    console: WebConsole, path: str, status: int, part: str
) -> None:
    answer = console.ask(path)
    assert (answer.status, list(misfits(answer.json, shapes.Problem))) == (status, [])
    assert part in answer.json["error"]


@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("POST", {}, 405),
        ("DELETE", {}, 405),
        ("GET", {"Host": "evil.example"}, 403),
        ("GET", {"Host": "localhost.evil.example:80"}, 403),
        ("GET", {"Host": "LOCALHOST:8080"}, 200),
        ("GET", {"Host": "[::1]:8080"}, 200),
        ("GET", {"Sec_Fetch_Site": "cross-site"}, 403),
        ("HEAD", {}, 200),
    ],
)
def test_the_guard_answers_only_its_own_page(
    console: WebConsole, method: str, headers: dict[str, str], status: int
) -> None:
    answer = console.ask("/api/overview", method, **headers)
    assert answer.status == status
    assert answer.headers["content-security-policy"].startswith("default-src 'none'; script-src")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["cache-control"] == "no-store"
    assert method != "HEAD" or answer.body == b""


def test_streams_deliver_an_event_and_a_message(broker: Broker, console: WebConsole) -> None:
    with (
        console.follow("/api/events/stream?kind=topic-created") as events,
        console.follow("/api/topics/new/messages/stream?search=wanted") as messages,
    ):
        with SyncProducer(broker.bootstrap_servers) as producer:
            producer.send("new", b"other")
            producer.send("new", b"wanted")
        message: shapes.Message = next(messages)
        assert (message["offset"], message["value"]["text"]) == (1, "wanted")
        assert list(misfits(message, shapes.Message)) == []
        with SyncAdmin(broker.bootstrap_servers) as admin:
            admin.create_topics(NewTopic("streamed", 1))
        event: shapes.EventRow = next(events)
        assert (event["topic"], list(misfits(event, shapes.EventRow))) == ("streamed", [])


def test_a_reader_who_has_gone_frees_its_place(console: WebConsole) -> None:
    """More readers than places, one after the other."""
    for _ in range(10):
        with console.follow("/api/topics/new/messages/stream"):
            pass
    wait_until(lambda: console.ask("/api/topics/new/messages").status == 200)


@pytest.mark.parametrize("number", [SIGINT, SIGTERM])
def test_a_signal_ends_it_cleanly_and_its_streams_too(broker: Broker, number: Signals) -> None:
    with (
        web_console(broker.bootstrap_servers) as running,
        running.follow("/api/topics/new/messages/stream") as messages,
    ):
        assert running.stop(number) == 0
        assert list(messages) == []
        assert running.process.stderr is not None and running.process.stderr.read() == b""


def refused(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([COMMAND, "console", *words], capture_output=True, text=True, timeout=120)


def test_what_cannot_start_says_why(broker: Broker) -> None:
    done = refused("--port", "0", "--bootstrap-server", f"127.0.0.1:{free_port()}")
    assert (done.returncode, done.stdout) == (1, "")
    assert "is --bootstrap-server correct?" in done.stderr
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = refused("--port", port, "--bootstrap-server", broker.bootstrap_servers)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"--port {port}: another process listens on it" in done.stderr
    done = refused("--host", "no.such.host.invalid")
    assert (done.returncode, "no.such.host.invalid" in done.stderr) == (1, True)


def test_another_host_has_to_be_given_and_is_warned_of(broker: Broker) -> None:
    with web_console(broker.bootstrap_servers, "--host", "0.0.0.0") as running:
        assert running.ask("/api/overview", Host=socket.gethostname()).status == 200
        assert running.ask("/api/overview", Host="evil.example").status == 403
        running.stop()
        assert running.process.stderr is not None
        assert b"warning: --host 0.0.0.0: everyone" in running.process.stderr.read()


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with barnabas.Cluster(3, config={"zookeeper.session.timeout.ms": "2000"}) as running:
        with SyncAdmin(running.bootstrap_servers) as admin:
            admin.create_topics(
                [
                    NewTopic("alone", assignment={0: [3]}),
                    NewTopic("safe", assignment={0: [1, 2, 3]}),
                ]
            )
        yield running


@pytest.mark.slow
def test_a_dead_broker_is_a_finding_with_its_cause(cluster: Cluster) -> None:
    with web_console(cluster.bootstrap_servers) as console:
        assert console.get("/api/overview", shapes.Overview)["findings"] == []
        cluster.kill_broker(3)
        found: dict[str, Any] = {}

        def has_all() -> bool:
            overview: shapes.Overview = console.get("/api/overview", shapes.Overview)
            found.update({each["what"]: each for each in overview["findings"]})
            # The metadata of the brokers may change a moment before their events are read.
            whys = [each["why"] for each in found.values() if each["severity"] == "critical"]
            counts = overview["leaderless"], overview["under_replicated"]
            return counts == (1, 1) and len(whys) > 1 and all(whys)

        wait_until(has_all)
        lost = found["Broker 3 has replicas, but is not in the cluster"]
        assert (lost["severity"], lost["why"]) == ("critical", "broker 3 failed: its session ended")
        alone = found["1 partition has no leader: alone-0"]
        assert (alone["link"], "broker 3" in alone["why"]) == ("#/topics/alone", True)
        events: shapes.Events = console.get("/api/events?kind=broker-failed", shapes.Events)
        assert [row["broker"] for row in events["events"]] == [3]
        page: shapes.TopicPage = console.get("/api/topics/alone", shapes.TopicPage)
        (partition,) = page["partitions"]
        assert (partition["leader"], partition["replicas"][0]["is_alive"]) == (None, False)
        messages: shapes.Messages = console.get("/api/topics/alone/messages", shapes.Messages)
        assert (messages["messages"], messages["is_complete"]) == ([], False)
        cluster.start_broker(3)
        wait_until(lambda: console.get("/api/overview", shapes.Overview)["findings"] == [])


@pytest.mark.slow
def test_all_brokers_gone_leaves_the_last_look_with_its_error() -> None:
    with (
        barnabas.Broker() as broker,
        web_console(broker.bootstrap_servers) as console,
    ):
        before: shapes.Overview = console.get("/api/overview", shapes.Overview)
        broker.stop()
        wait_until(lambda: console.get("/api/overview", shapes.Overview)["error"])
        after: shapes.Overview = console.get("/api/overview", shapes.Overview)
        assert (after["cluster_id"], after["brokers"]) == (before["cluster_id"], 1)
