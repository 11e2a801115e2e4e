"""What must be true of a cluster of both kinds of brokers, whatever the versions of Kafka."""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from barnabas.client import SyncAdmin
from barnabas.client.admin.partition_admin import PREFERRED
from barnabas.protocol.api import INIT_PRODUCER_ID, METADATA
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.types import TopicPartition, uuid_text
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
    PATIENCE_S,
    Kind,
    MixedCluster,
    described,
    name_led_by,
    restore_leaders,
)
from tests.kit.processes.mixed_load import (
    end_transaction,
    is_led_as,
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
from tests.kit.raw_client import RawClient
from tests.kit.waiting import wait_until

STEP = 100
BLOCK = 1_000


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
            # Even a cluster of only Kafka 2.8 may never answer that the transaction has begun, if
            # the ISR shrinks meanwhile (KAFKA-13091).
            send_all(producer, topic, values[:1])
            assert producer.flush(PATIENCE_S) == 0
            send_all(producer, topic, values[1 : STEP // 2])
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


def check_isrs(
    mixed: MixedCluster, admin: SyncAdmin, controller: Kind, leader: int, follower: int
) -> None:
    """The leader removes a follower that does nothing from the ISR, and adds it again."""
    [third] = {1, 2, 3} - {leader, follower}
    topic = make_topic(admin, "isr", {0: [leader, third, follower]})
    while mixed.give_control_to(controller) == follower:
        mixed.depose()
    # A client that asked the follower first would wait for it, until its session has expired.
    servers = mixed.ours.brokers[leader].bootstrap_servers
    with paused(mixed, follower):
        values = [Sent(0, b"key", b"%d" % n) for n in range(3)]
        # Kafka 2.8 does not raise the high watermark when the ISR shrinks (KAFKA-13091).
        confluent_client.produce(servers, topic, values, promise=Promise(1))
        wait_until(lambda: isr_at(mixed, leader, topic) == {leader, third}, PATIENCE_S)
    wait_until(lambda: isr_at(mixed, leader, topic) == {1, 2, 3}, PATIENCE_S)
    wait_for_equal_files(mixed.ours, topic, 0)


def check_return(mixed: MixedCluster, admin: SyncAdmin, leader: int, follower: int) -> None:
    """A follower whose session has expired fetches again before it is registered again."""
    [third] = {1, 2, 3} - {leader, follower}
    topic = make_topic(admin, "back", {0: [leader, third, follower]})
    while mixed.give_control_to("ours") == follower:
        mixed.depose()
    with paused(mixed, follower):
        wait_until(lambda: follower not in mixed.registered(), PATIENCE_S)
        wait_until(lambda: isr_at(mixed, leader, topic) == {leader, third}, PATIENCE_S)
    mixed.wait_for_members()
    wait_until(lambda: isr_at(mixed, leader, topic) == {1, 2, 3}, PATIENCE_S)


def isr_at(mixed: MixedCluster, broker_id: int, topic: str) -> set[int]:
    """As this broker has it, as a client might ask the one that does nothing."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
    with RawClient(mixed.ours.brokers[broker_id].bootstrap_servers) as client:
        [found] = client.call(METADATA, 9, request).topics
    return set(found.partitions[0].isr_nodes)


@contextmanager
def paused(mixed: MixedCluster, broker_id: int) -> Iterator[None]:
    """A broker does nothing for the length of the block."""
    os.kill(mixed.pid_of(broker_id), signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(mixed.pid_of(broker_id), signal.SIGCONT)


def check_producer_ids(mixed: MixedCluster) -> None:
    """No id is given twice, by whichever kind of broker under whichever kind of controller."""
    given: list[int] = []
    for controller, kind in itertools.product(KINDS, KINDS):
        mixed.give_control_to(controller)
        broker = mixed.ours.brokers[mixed.of_kind(kind)[0]]
        with RawClient(broker.bootstrap_servers) as client:
            wanted = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
            count = 0
            while count <= BLOCK:  # so that a new block has to be asked for
                answer = client.call(INIT_PRODUCER_ID, 4, wanted)
                if not answer.error_code:
                    given.append(answer.producer_id)
                    count += 1
    assert len(set(given)) == len(given) == 4 * (BLOCK + 1)


def check_moves(mixed: MixedCluster, admin: SyncAdmin, controller: Kind) -> bytes:
    """A partition moves between the kinds; then its topic grows and is deleted. Returns its id."""
    servers = mixed.bootstrap_servers
    mixed.give_control_to(controller)
    topic = make_topic(admin, "moved", {0: [1, 3]})
    topic_id, name = described(admin, topic).topic_id, TopicPartition(topic, 0)
    count = 0
    for replicas in ([2, 3], [3, 1], [1, 2, 3], [2, 1, 3]):
        count += STEP
        values = [Sent(0, b"key", b"%d" % n) for n in range(count - STEP, count)]
        confluent_client.produce(servers, topic, values)
        assert admin.alter_partition_reassignments({name: replicas}) == {name: None}
        wait_until(partial(has_moved, admin, topic, tuple(replicas)), PATIENCE_S)
        admin.elect_leaders(PREFERRED, [name])
        wait_until(partial(is_led_as, admin, topic, {0: replicas[0]}), PATIENCE_S)
    seen = confluent_client.consume(servers, topic, 1, count)
    assert [one.value for one in seen] == [b"%d" % n for n in range(count)]
    for broker_id, broker in mixed.ours.brokers.items():
        with SyncAdmin(broker.bootstrap_servers) as one:
            assert described(one, topic).topic_id == topic_id
        # Kafka 2.8 writes no id in IBP 2.7, even if a controller has sent one.
        if any(topic_id) and mixed.kinds[broker_id] == "ours":
            assert uuid_text(topic_id) in metadata_file(broker.data_dir, topic)
    wait_for_equal_files(mixed.ours, topic, 0)
    admin.create_partitions(topic, 3)
    wait_until(lambda: len(described(admin, topic).partitions) == 3, PATIENCE_S)
    admin.delete_topics([topic])
    for broker in mixed.ours.brokers.values():
        wait_until(partial(is_gone, broker.data_dir / f"{topic}-0"), PATIENCE_S)
    mixed.wait_for_deletion(topic)
    return topic_id


def is_gone(path: Path) -> bool:
    return not path.exists()


def has_moved(admin: SyncAdmin, topic: str, replicas: tuple[int, ...]) -> bool:
    if admin.list_partition_reassignments():
        return False
    [partition] = described(admin, topic).partitions
    return tuple(partition.replicas) == replicas and set(partition.isr) == set(replicas)


def metadata_file(data_dir: Path, topic: str) -> str:
    return (data_dir / f"{topic}-0" / "partition.metadata").read_text()
