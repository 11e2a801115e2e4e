"""IN-6: `barnabas console --write` reassigns partitions, in front of three brokers."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

import barnabas
from barnabas.client.admin.admin import NewTopic
from barnabas.client.sync.producer import SyncAdmin, SyncProducer
from barnabas.console import shapes
from barnabas.testing import Cluster
from barnabas.types import TopicPartition
from tests.kit.console_actions import apply, error_of, make, preview
from tests.kit.processes.web_console import WebConsole, web_console
from tests.kit.waiting import wait_until

pytestmark = pytest.mark.slow

NUMBERS = itertools.count()
RECORD = b"x" * 50_000
REASSIGN, CANCEL, CLEAR = "reassign-partitions", "cancel-reassignment", "clear-throttles"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    # A follower fetches one record at a time, so a throttle applies from the second one.
    with barnabas.Cluster(3, config={"replica.fetch.max.bytes": "10000"}) as running:
        yield running


@pytest.fixture(scope="module")
def admin(cluster: Cluster) -> Iterator[SyncAdmin]:
    with SyncAdmin(cluster.bootstrap_servers) as running:
        yield running


@pytest.fixture(scope="module")
def console(cluster: Cluster) -> Iterator[WebConsole]:
    with web_console(cluster.bootstrap_servers, "--write") as running:
        yield running


@pytest.fixture
def topic(cluster: Cluster, admin: SyncAdmin) -> str:
    """A topic of this test alone, with two partitions of four records each on broker 1."""
    name = f"topic-{next(NUMBERS)}"
    admin.create_topics([NewTopic(name, assignment={0: [1], 1: [1]})])
    with SyncProducer(cluster.bootstrap_servers) as producer:
        for number in range(8):
            producer.send(name, RECORD, partition=number % 2)
    return name


def replicas(admin: SyncAdmin, topic: str) -> list[tuple[int, ...]]:
    (found,) = admin.describe_topics([topic])
    return [each.replicas for each in found.partitions]


def moves(console: WebConsole, topic: str) -> list[shapes.Move] | None:
    # The console polls the list of topics.
    wait_until(lambda: console.ask(f"/api/topics/{topic}").status == 200)
    page: shapes.TopicPage = console.get(f"/api/topics/{topic}", shapes.TopicPage)
    return page["moves"]


def test_a_topic_is_spread_over_the_named_brokers(
    console: WebConsole, admin: SyncAdmin, topic: str
) -> None:
    found = preview(console, REASSIGN, topic=topic, brokers=[2, 3])
    assert [(each["what"], each["before"]) for each in found["changes"]] == [
        (f"{topic}-0", "1"),
        (f"{topic}-1", "1"),
    ]
    to = [each["after"] for each in found["changes"]]
    assert sorted(map(str, to)) == ["2", "3"], "each of the brokers gets one"
    size = int(found["sentences"][0].split()[1].replace(",", ""))
    assert 8 * len(RECORD) <= size < 9 * len(RECORD), found["sentences"]
    for each in found["changes"]:
        assert each["about"] == f"adds {each['after']}, removes 1; copies {size // 2:,} bytes"
    answer = apply(console, REASSIGN, found["token"])
    assert (answer.status, answer.json["sentences"][0]) == (
        200,
        "The reassignment of 2 partitions was started. The page of the topic shows it.",
    )
    wait_until(lambda: replicas(admin, topic) == [(int(str(each)),) for each in to])


def test_one_partition_moves_as_listed(console: WebConsole, admin: SyncAdmin, topic: str) -> None:
    listed = [{"partition": 1, "brokers": [3, 1]}]
    assert make(console, REASSIGN, topic=topic, replicas=listed) == [(f"{topic}-1", "1", "3,1")]
    wait_until(lambda: replicas(admin, topic) == [(1,), (3, 1)])
    # The new replicas are listed as soon as the reassignment begins.
    wait_until(lambda: not admin.list_partition_reassignments())
    again = preview(console, REASSIGN, topic=topic, replicas=listed)
    assert (again["changes"], again["token"]) == ([], "")
    listed[0]["brokers"] = [1, 3]
    (change,) = preview(console, REASSIGN, topic=topic, replicas=listed)["changes"]
    assert change["about"] == "only the order changes"
    (change,) = preview(console, REASSIGN, topic=topic, brokers=[2], partition=0)["changes"]
    assert (change["what"], change["after"]) == (f"{topic}-0", "2")
    (change,) = preview(console, REASSIGN, topic=topic, brokers=[1, 2], partition=1)["changes"]
    assert change["after"] in ("1,2", "2,1"), (
        "it has as many replicas as before, not as partition 0"
    )


def test_what_runs_is_shown_and_cancelled_and_its_throttle_cleared(
    console: WebConsole, admin: SyncAdmin, topic: str
) -> None:
    listed = [{"partition": 0, "brokers": [2]}]
    made = make(console, REASSIGN, topic=topic, replicas=listed, bytes_per_s=1)
    assert made == [(f"{topic}-0", "1", "2"), ("throttle of brokers 1,2", "none", "1 byte/s")]
    assert moves(console, topic) == [
        {"partition": 0, "adding": [2], "removing": [1], "replicas": [2]}
    ]
    running = "A partition reassignment is in progress for"
    for name, fields in {
        REASSIGN: {"replicas": [{"partition": 0, "brokers": [3]}]},
        CLEAR: {},
    }.items():
        answer = console.post(f"/api/actions/{name}/preview", {"topic": topic, **fields})
        assert f"{running} {topic}-0" in error_of(answer, 422)
    found = preview(console, REASSIGN, topic=topic, brokers=[3], partition=1)
    assert [(each["before"], each["after"]) for each in found["changes"]] == [("1", "3")]
    assert "The cluster is already reassigning 1 other partition." in found["warnings"][0]
    assert preview(console, CANCEL, topic=topic, partition=1)["token"] == ""
    assert make(console, CANCEL, topic=topic) == [
        (f"{topic}-0", "2,1 (adds 2, removes 1)", "1"),
    ]
    assert (moves(console, topic), replicas(admin, topic)) == ([], [(1,), (1,)])
    rates = [f"{side}.replication.throttled.rate" for side in ("leader", "follower")]
    lists = [f"{side}.replication.throttled.replicas" for side in ("leader", "follower")]
    assert sorted(make(console, CLEAR, topic=topic)) == sorted(
        [(f"{rate} of broker {each}", "1", None) for rate in rates for each in (1, 2)]
        + [
            (f"{name} of topic {topic}", text, None)
            for name, text in zip(lists, ("0:1", "0:2"), strict=True)
        ]
    )
    assert preview(console, CLEAR, topic=topic)["token"] == ""


def test_an_assignment_that_changed_since_the_preview_is_refused(
    console: WebConsole, admin: SyncAdmin, topic: str
) -> None:
    token = preview(console, REASSIGN, topic=topic, brokers=[2])["token"]
    admin.alter_partition_reassignments({TopicPartition(topic, 1): [3]})
    wait_until(lambda: replicas(admin, topic)[1] == (3,))
    wait_until(lambda: not admin.list_partition_reassignments())
    told = error_of(apply(console, REASSIGN, token), 409)
    assert f"{topic}-1 was 1 and is now 3" in told
    assert replicas(admin, topic) == [(1,), (3,)], "nothing was done"


def test_a_topic_made_anew_since_the_preview_is_refused(
    console: WebConsole, admin: SyncAdmin, topic: str
) -> None:
    token = preview(console, REASSIGN, topic=topic, brokers=[2])["token"]
    admin.delete_topics(topic)
    admin.create_topics([NewTopic(topic, assignment={0: [1], 1: [1]})])
    assert "nothing was done" in error_of(apply(console, REASSIGN, token), 409)


def listed(*brokers: int, partition: int = 0) -> dict[str, Any]:
    return {"replicas": [{"partition": partition, "brokers": list(brokers)}]}


NOT_ALIVE = "Replica assignment has brokers that are not alive. Replica list: "


@pytest.mark.parametrize(
    ("fields", "status", "part"),
    [
        ({}, 400, "brokers: give these, or the replicas"),
        ({"brokers": [1], **listed(1)}, 400, "brokers: give these, or the replicas"),
        ({"partition": 0, **listed(1)}, 400, "partition: it goes with brokers"),
        ({"brokers": [True]}, 400, "brokers: give a whole number from 0"),
        ({"replicas": [*listed(1)["replicas"], *listed(2)["replicas"]]}, 400, "is named twice"),
        ({"brokers": [2], "partition": 2}, 400, "has the partitions 0 to 1"),
        (listed(2, partition=2), 400, "has the partitions 0 to 1"),
        ({"brokers": [2], "bytes_per_s": 0}, 400, "bytes_per_s: give a whole number from 1"),
        ({"brokers": [2, 9]}, 422, f"{NOT_ALIVE}2,9, live broker list: 1,2,3"),
        (listed(1, 9), 422, f"{NOT_ALIVE}9, live broker list: 1,2,3"),
        ({"brokers": [2, 2]}, 422, "Duplicate broker ids in the list: 2,2"),
        (listed(2, 2), 422, "Duplicate replica ids in partition reassignment replica list: 2,2"),
        (listed(), 422, "Empty replica list specified in partition reassignment"),
    ],
)
def test_what_the_cluster_would_refuse_is_refused(
    console: WebConsole, admin: SyncAdmin, fields: dict[str, Any], status: int, part: str
) -> None:
    if "fixed" not in admin.list_topics():
        admin.create_topics([NewTopic("fixed", assignment={0: [1], 1: [1]})])
    answer = console.post(f"/api/actions/{REASSIGN}/preview", {"topic": "fixed", **fields})
    assert part in error_of(answer, status)
    assert status == 400 or "INVALID_REPLICA_ASSIGNMENT" in error_of(answer, status)


def test_too_few_brokers_are_refused(console: WebConsole, admin: SyncAdmin) -> None:
    admin.create_topics([NewTopic("wide", assignment={0: [1, 2]})])
    answer = console.post(f"/api/actions/{REASSIGN}/preview", {"topic": "wide", "brokers": [3]})
    assert "Replication factor: 2 larger than available brokers: 1" in error_of(answer, 422)
    for name in (REASSIGN, CANCEL, CLEAR):
        more = {"brokers": [1]} if name == REASSIGN else {}
        answer = console.post(f"/api/actions/{name}/preview", {"topic": "nope", **more})
        assert "nope" in error_of(answer, 404)
