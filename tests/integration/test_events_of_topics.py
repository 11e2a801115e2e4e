"""Who created, enlarged and deleted topics of a cluster, as its brokers report it (IN-1)."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from kazoo.client import KazooClient  # type: ignore[import-untyped]

from barnabas.client import NewTopic, SyncAdmin, SyncConsumer, SyncProducer
from barnabas.client.admin.event_admin import by_time
from barnabas.events import Event
from tests.kit.processes.cluster_process import ClusterProcess, cluster_process
from tests.kit.processes.reported_events import the_event

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

CLIENT = "client id 'builder', host 127.0.0.1"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterProcess]:
    with cluster_process(tmp_path_factory.mktemp("topics"), 2) as cluster:
        yield cluster


@pytest.fixture
def admin(cluster: ClusterProcess) -> Iterator[SyncAdmin]:
    with SyncAdmin(cluster.bootstrap_servers, client_id="builder") as admin:
        yield admin


def _event(admin: SyncAdmin, kind: str, topic: str) -> Event:
    return the_event(admin, lambda event: (event.kind, event.topic) == (kind, topic))


def test_in_1_a_request_is_the_cause(cluster: ClusterProcess, admin: SyncAdmin) -> None:
    """IN-1: the controller says which client asked, in its log and in its events."""
    admin.create_topics(NewTopic("asked"))
    admin.create_partitions("asked", 3)
    admin.delete_topics("asked")
    log = cluster.brokers[admin.describe_cluster().controller_id].log.read_text()
    for kind, what, request in (
        ("topic-created", "New topics", "CreateTopics"),
        ("partitions-added", "New partitions of topics", "CreatePartitions"),
        ("topic-deleted", "Deleted topics", "DeleteTopics"),
    ):
        event = _event(admin, kind, "asked")
        assert event.cause == f"{request} by principal User:ANONYMOUS, {CLIENT}"
        assert event.text.endswith(f": {event.cause}")
        assert f"] {what}: asked: {event.cause}\n" in log
    admin.create_topics(NewTopic("asked"))  # whose cause is not that of the first one
    with SyncAdmin(cluster.bootstrap_servers, client_id="other") as other:
        other.delete_topics("asked")
        the_event(admin, lambda event: event.kind == "topic-deleted" and "'other'" in event.cause)


def test_in_1_a_topic_that_is_created_automatically(
    cluster: ClusterProcess, admin: SyncAdmin
) -> None:
    """IN-1: by the controller itself, or by another broker, which reports it."""
    controller = admin.describe_cluster().controller_id
    for broker_id, broker in cluster.brokers.items():
        topic = f"automatic-{broker_id}"
        with SyncProducer(broker.bootstrap_servers, client_id="builder") as producer:
            producer.send(topic, b"v").result(60)
        cause = (
            "auto.create.topics.enable is true, and Metadata by principal User:ANONYMOUS, "
            f"{CLIENT} named it"
        )
        event = the_event(
            admin,
            lambda event: event.topic == topic and event.cause == cause,  # noqa: B023
        )
        assert event.kind == "topic-created"
        assert event.cause in broker.log.read_text()
        if broker_id != controller:
            the_event(
                admin,
                lambda event: (
                    event.kind == "topic-created"
                    and event.topic == topic  # noqa: B023
                    and event.cause
                    == "another broker or a tool created its node in the metadata store"
                ),
            )
    found = [
        broker_id
        for broker_id, event in by_time(admin.events())
        if event.topic.startswith("automatic-") and event.kind == "topic-created"
    ]
    assert len(found) == 3


def test_in_1_an_internal_topic_says_which_request_needed_it(
    cluster: ClusterProcess, admin: SyncAdmin
) -> None:
    with SyncConsumer(cluster.bootstrap_servers, group_id="g", client_id="builder") as consumer:
        consumer.subscribe(["automatic-1"])
        consumer.poll(2_000)
    event = the_event(
        admin, lambda event: event.topic == "__consumer_offsets" and "FindCoord" in event.cause
    )
    assert re.fullmatch(
        f"the first FindCoordinator by principal User:ANONYMOUS, {CLIENT}", event.cause
    )


def test_in_1_a_deletion_that_a_tool_requested_has_no_invented_cause(
    cluster: ClusterProcess, admin: SyncAdmin
) -> None:
    admin.create_topics(NewTopic("by-hand"))
    store = KazooClient(hosts=cluster.zookeeper.connect)
    store.start()
    try:
        store.create("/admin/delete_topics/by-hand")
    finally:
        store.stop()
        store.close()
    assert _event(admin, "topic-deleted", "by-hand").cause == (
        "another broker, a tool or an earlier controller requested its deletion"
    )
