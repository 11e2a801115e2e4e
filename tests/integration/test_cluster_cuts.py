"""Three processes and a ZooKeeper on a network whose wires are cut, while everybody lives on."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from barnabas.errors import NotEnoughReplicas
from barnabas.protocol.api import METADATA, PRODUCE
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.integration.namespaces import HUB, networked_cluster
from tests.kit.clients import confluent_client
from tests.kit.clients.clients import Sent
from tests.kit.processes.cluster_load import (
    ASKED,
    BURST,
    acknowledge_more,
    check_everything_is_there,
    check_replicas_are_equal,
    controller_of,
    create_led_by,
    impatient_sender,
    leader_of,
    produce,
    produce_request,
    wait_for_full_isr,
)
from tests.kit.processes.cluster_process import wait_for_equal_files
from tests.kit.processes.senders import sending
from tests.kit.raw_client import RawClient
from tests.kit.waiting import wait_until

pytestmark = [pytest.mark.secured, pytest.mark.slow, pytest.mark.foreign, pytest.mark.timeout(600)]

NEEDS_TWO = "min.insync.replicas=2"
# A busy machine holds followers up: a leader that takes them out of the ISR before its session ends
# leaves no broker that may lead.
IN_SYNC_FOR_LONG = "replica.lag.time.max.ms=30000"
SOON_OUT_OF_SYNC = "replica.lag.time.max.ms=2000"
# Where no broker is cut off from ZooKeeper, none is to lose its session because it is held up.
SESSIONS_LIVE_ON = "zookeeper.session.timeout.ms=60000"


# Without a way to ZooKeeper and the clients, with one to the other brokers and without.
@pytest.mark.parametrize("is_alone", [True, False], ids=["from-all", "from-zookeeper"])
def test_a_leader_that_is_cut_off_acknowledges_nothing(tmp_path: Path, is_alone: bool) -> None:
    """RE-5, RE-10, DL-2, ZK-5: it takes itself for the leader, and has a client beside it."""
    with (
        networked_cluster(tmp_path, 3, NEEDS_TWO, IN_SYNC_FOR_LONG) as (cluster, network),
        sending(impatient_sender, cluster.bootstrap_servers, 3) as sender,
    ):
        servers = cluster.bootstrap_servers
        acknowledge_more([sender])
        leader = leader_of(servers, sender.topic)
        others = [key for key in cluster.brokers if key != leader]
        elsewhere = ",".join(cluster.brokers[key].bootstrap_servers for key in others)
        create_led_by(leader, cluster)
        beside = network.connect_from(leader, cluster.brokers[leader].bootstrap_servers)
        with beside as client:
            sender.allow(BURST)
            network.cut(leader, HUB, *(others if is_alone else ()))
            for key in others:  # each by itself: until it hears of it, it copies from the old one
                asked = cluster.brokers[key].bootstrap_servers
                wait_until(partial(has_moved, asked, leader))
            lost = client.send(PRODUCE, 9, produce_request(b"lost"))
            acknowledge_more([sender])  # by another leader
            confluent_client.produce(elsewhere, ASKED, [Sent(0, None, b"kept")])
            network.heal()
            got, answer = client.receive(PRODUCE, 9)
        assert got == lost
        assert answer.responses[0].partition_responses[0].error_code != 0
        acknowledge_more([sender])
        for topic in (sender.topic, ASKED):
            wait_for_full_isr(servers, topic)
        sender.stop()
        check_everything_is_there(sender, servers)
        [stored] = confluent_client.consume(servers, ASKED, 1, 1)
        assert (stored.offset, stored.value) == (0, b"kept")
        check_replicas_are_equal(cluster, sender)
        wait_for_equal_files(cluster, ASKED, 0)


def test_a_leader_without_followers_takes_no_writes_until_one_is_back(tmp_path: Path) -> None:
    """RE-8, RE-9, DL-2: first one wire is cut, and the others go on; then the last one. The leader
    is the controller, so that it can say who is in sync; ZooKeeper and clients reach everybody."""
    with (
        networked_cluster(tmp_path, 3, NEEDS_TWO, SOON_OUT_OF_SYNC, SESSIONS_LIVE_ON) as (
            cluster,
            network,
        ),
        sending(impatient_sender, cluster.bootstrap_servers, 3) as sender,
    ):
        servers = cluster.bootstrap_servers
        acknowledge_more([sender])
        controller = controller_of(cluster)
        create_led_by(controller, cluster)
        first, second = (key for key in cluster.brokers if key != controller)
        with RawClient(cluster.brokers[controller].bootstrap_servers) as client:
            network.cut(controller, first)
            taken = produce(client, b"of two", timeout_ms=60_000)
            assert taken == 0, "as soon as no one waits for the third"
            wait_until(lambda: in_sync(client) == {controller, second})
            network.cut(controller, second)
            wait_until(lambda: produce(client, b"refused") == NotEnoughReplicas.code)
            wait_until(lambda: in_sync(client) == {controller})
            count = sender.acknowledged_count()
            network.heal()
            wait_until(lambda: produce(client, b"taken") == 0)
        acknowledge_more([sender])
        for topic in (sender.topic, ASKED):
            wait_for_full_isr(servers, topic)
        sender.stop()
        assert sender.acknowledged_count() > count
        check_everything_is_there(sender, servers)
        check_replicas_are_equal(cluster, sender)
        wait_for_equal_files(cluster, ASKED, 0)


def has_moved(servers: str, leader: int) -> bool:
    """Whether, as that broker knows it, another one leads by now."""
    return leader_of(servers, ASKED) != leader


def in_sync(client: RawClient) -> set[int]:
    """As the broker knows it with which the client speaks."""
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=ASKED)], allow_auto_topic_creation=False
    )
    [topic] = client.call(METADATA, 9, request).topics
    return set(topic.partitions[0].isr_nodes)
