"""What must be true of a cluster of both kinds of brokers, whatever the versions of Kafka."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from barnabas.client import SyncAdmin
from tests.kit.clients import confluent_client
from tests.kit.clients.clients import Promise, Sent
from tests.kit.processes.cluster_load import (
    BURST,
    acknowledge_more,
    check_everything_is_there,
    committed_values,
    wait_for_full_isr,
)
from tests.kit.processes.cluster_process import wait_for_equal_files
from tests.kit.processes.mixed_cluster import (
    KINDS,
    Kind,
    MixedCluster,
    name_led_by,
    restore_leaders,
)
from tests.kit.processes.mixed_load import (
    end_transaction,
    lead,
    make_topic,
    read_in_group,
    send_all,
    their_sender,
    transact,
    transactional,
    warm_internal_topics,
)
from tests.kit.processes.senders import PARTITIONS, sending

STEP = 100


def led_by(mixed: MixedCluster, kind: Kind) -> list[int]:
    """Replicas of which the first is of that kind."""
    return sorted(mixed.kinds, key=lambda broker_id: mixed.kinds[broker_id] != kind)


def check_every_role(mixed: MixedCluster, admin: SyncAdmin) -> None:
    """An idempotent producer, a group and a transaction in each of the eight pairings of roles;
    producers and positions of one pairing are used again in the others."""
    servers = mixed.bootstrap_servers
    plain = {kind: make_topic(admin, f"by-{kind}", {0: led_by(mixed, kind)}) for kind in KINDS}
    whole = {kind: make_topic(admin, f"tx-{kind}", {0: led_by(mixed, kind)}) for kind in KINDS}
    confluent_client.produce(servers, plain["ours"], [])
    warm_internal_topics(mixed, admin)
    groups, producers = {}, {}
    for kind in KINDS:
        ids = mixed.of_kind(kind)
        groups[kind] = name_led_by(admin, "__consumer_offsets", "readers", ids)
        producers[kind] = transactional(
            servers, name_led_by(admin, "__transaction_state", "writer", ids)
        )
    written = dict.fromkeys((*plain.values(), *whole.values()), 0)
    read = {(topic, group): 0 for topic in plain.values() for group in groups.values()}
    committed: dict[str, list[bytes]] = {topic: [] for topic in whole.values()}
    for controller, leader, coordinator in itertools.product(KINDS, KINDS, KINDS):
        mixed.give_control_to(controller)
        topic, tx_topic, group = plain[leader], whole[leader], groups[coordinator]
        values = [b"%d" % (written[topic] + n) for n in range(STEP)]
        sent = [Sent(0, b"key", value) for value in values]
        promise = Promise(-1, is_idempotent=True)
        confluent_client.produce(servers, topic, sent, promise=promise)
        written[topic] += STEP
        start = read[topic, group]
        read[topic, group] = written[topic]
        seen = read_in_group(servers, group, topic, written[topic] - start)
        assert seen == [b"%d" % n for n in range(start, written[topic])]
        for commits in (True, False):
            values = [b"%d" % (written[tx_topic] + n) for n in range(STEP)]
            written[tx_topic] += STEP
            transact(producers[coordinator], tx_topic, values, commits=commits)
            committed[tx_topic] += values * commits
    for topic in whole.values():
        assert committed_values(servers, topic, 1) == committed[topic]
    for topic in (*plain.values(), *whole.values()):
        wait_for_equal_files(mixed.ours, topic, 0)


def check_changes(
    mixed: MixedCluster, admin: SyncAdmin, changes: Sequence[tuple[int, Kind]]
) -> int:
    """Returns how many records were acknowledged. Each change has the broker that ends, which
    leads everything then, and the kind that starts in its place. One of its own kind: it is killed,
    under an idempotent producer and inside a transaction."""
    servers = mixed.bootstrap_servers
    topic = make_topic(admin, "tx", {0: [1, 2, 3]})
    producer = transactional(servers, "through-kills")
    committed: list[bytes] = []
    with sending(their_sender, servers, 3) as sender:
        for number, (broker_id, kind) in enumerate(changes):
            restore_leaders(admin)
            acknowledge_more([sender])
            lead(admin, sender.topic, 0, broker_id)
            lead(admin, topic, 0, broker_id)
            values = [b"%d-%d" % (number, n) for n in range(STEP)]
            producer.begin_transaction()
            send_all(producer, topic, values[: STEP // 2])
            sender.allow(BURST)
            (mixed.kill_one if mixed.kinds[broker_id] == kind else mixed.stop_one)(broker_id)
            send_all(producer, topic, values[STEP // 2 :])
            acknowledge_more([sender])
            end_transaction(producer)
            committed += values
            mixed.start_one(broker_id, kind)
            wait_for_full_isr(servers, sender.topic)
            wait_for_full_isr(servers, topic)
        acknowledge_more([sender])
        sender.stop()
    check_everything_is_there(sender, servers)
    assert committed_values(servers, topic, 1) == committed
    for name, partitions in ((sender.topic, PARTITIONS), (topic, 1)):
        for partition in range(partitions):
            wait_for_equal_files(mixed.ours, name, partition)
    print(f"{sender.acknowledged_count()} records and {len(committed)} in transactions are there")
    return sender.acknowledged_count()
