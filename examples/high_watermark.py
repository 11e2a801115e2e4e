"""How the high watermark follows the log ends, step by step, on three brokers in this program.

    LEO   log end offset: the next offset that a replica will write
    HW    high watermark: the first offset that consumers cannot see
    ISR   the in-sync replicas, for which the HW waits

Broker 1 leads. The followers are slow on purpose: they ask for more bytes than there are, so that
the leader keeps their fetches until `replica.fetch.wait.max.ms` is over.

pip install .
python examples/high_watermark.py
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import NamedTuple

import barnabas
from barnabas.client import NewTopic, SyncAdmin, SyncProducer, TopicPartition

BROKERS = (1, 2, 3)
PATIENCE_S = 60
ATTEMPTS = 5
SLOW = {"replica.fetch.min.bytes": 1_000_000}
FETCH_WAIT_MS = {2: 400, 3: 1_000}  # not multiples: one fetch ends at a time


class Replica(NamedTuple):
    """What a broker believes of its replica."""

    log_end_offset: int
    high_watermark: int


class State(NamedTuple):
    """What the brokers believe, by broker; one that is stopped is left out."""

    replicas: dict[int, Replica]
    isr: tuple[int, ...]


EMPTY = Replica(0, 0)
WRITTEN = Replica(1, 0)  # has the first record
VISIBLE = Replica(1, 1)  # ... and knows that all in-sync replicas have it

# What is shown of the first record: who believes what, and why.
FIRST_RECORD = (
    ((WRITTEN, EMPTY, EMPTY), "The leader has appended a record. No follower has fetched it."),
    (
        (WRITTEN, WRITTEN, EMPTY),
        "Broker 2's fetch(0) brought the record, and HW 0. With fetch(1) it says\n"
        "that its LEO is 1. The HW is the smallest LEO of the ISR: still 0.",
    ),
    (
        (VISIBLE, WRITTEN, WRITTEN),
        "Broker 3's fetch(0) brought the record, and HW 0. With its fetch(1) all\n"
        "LEOs are 1, so the leader raises the HW. The followers do not know yet.",
    ),
    ((VISIBLE, VISIBLE, VISIBLE), "The answers to fetch(1) had no records, and HW 1."),
)


def main() -> None:
    followers = {
        broker_id: {**SLOW, "replica.fetch.wait.max.ms": wait_ms}
        for broker_id, wait_ms in FETCH_WAIT_MS.items()
    }
    with barnabas.Cluster(brokers=len(BROKERS), broker_config=followers) as cluster:
        servers = cluster.bootstrap_servers
        with SyncAdmin(servers) as admin, SyncProducer(servers, acks=1) as producer:
            partition = follow_first_record(admin, producer)
            show_isr(cluster, admin, producer, partition)


def follow_first_record(admin: SyncAdmin, producer: SyncProducer) -> TopicPartition:
    """Print who believes what as the first record of a topic is copied."""
    empty = State(dict.fromkeys(BROKERS, EMPTY), BROKERS)
    steps = [
        State(dict(zip(BROKERS, replicas, strict=True)), BROKERS) for replicas, _ in FIRST_RECORD
    ]
    for attempt in range(ATTEMPTS):
        partition = TopicPartition(f"watermarks-{attempt}", 0)
        # An assignment names the brokers of a partition, its leader first.
        admin.create_topics([NewTopic(partition.topic, assignment={0: BROKERS})])
        wait_for(admin, partition, empty)
        producer.send(partition.topic, b"first").result()
        seen = list(states_until_visible(admin, partition))
        if [state for state in seen if state in steps] == steps:
            break
        # A busy machine looked too late, or a fetch ended just then: once more, in a new topic.
    else:
        raise TimeoutError(f"not every step was seen, in {ATTEMPTS} attempts")
    show("An empty partition", empty, "Everything is 0.")
    for number, (step, (_, why)) in enumerate(zip(steps, FIRST_RECORD, strict=True), start=1):
        show(f"The first record, step {number}", step, why)
    return partition


def show_isr(
    cluster: barnabas.Cluster, admin: SyncAdmin, producer: SyncProducer, partition: TopicPartition
) -> None:
    """Print what the ISR has to do with it: the HW does not wait for a replica outside."""
    cluster.stop_broker(3)
    state = wait_for(admin, partition, State({1: VISIBLE, 2: VISIBLE}, (1, 2)))
    show("Broker 3 stops", state, "It leaves the ISR.")

    producer.send(partition.topic, b"second").result()
    level = Replica(2, 2)
    state = wait_for(admin, partition, State({1: level, 2: level}, (1, 2)))
    show("The second record", state, "The HW waits for brokers 1 and 2 only.")

    cluster.start_broker(3)
    state = wait_for(admin, partition, State(dict.fromkeys(BROKERS, level), BROKERS))
    show("Broker 3 is back", state, "It fetched what it missed, and joined the ISR.")


def states_until_visible(admin: SyncAdmin, partition: TopicPartition) -> Iterator[State]:
    """Every state that is seen, until all replicas know that the record is visible."""
    before: State | None = None
    ends_at_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < ends_at_s:
        state = look(admin, partition)
        if state != before:
            yield state
        if state.replicas == dict.fromkeys(BROKERS, VISIBLE):
            return
        before = state
    raise TimeoutError(f"not visible within {PATIENCE_S} s: {before}")


def wait_for(admin: SyncAdmin, partition: TopicPartition, wanted: State) -> State:
    ends_at_s = time.monotonic() + PATIENCE_S
    while (state := look(admin, partition)) != wanted:
        if time.monotonic() > ends_at_s:
            raise TimeoutError(f"{wanted} was not seen within {PATIENCE_S} s, but {state}")
    return state


def look(admin: SyncAdmin, partition: TopicPartition) -> State:
    """Ask all brokers; what two rounds agree on was true of all of them at one time."""
    ends_at_s = time.monotonic() + PATIENCE_S
    before, state = None, ask(admin, partition)
    while state != before:
        if time.monotonic() > ends_at_s:
            raise TimeoutError(f"the brokers did not come to rest within {PATIENCE_S} s")
        time.sleep(0.01)
        before, state = state, ask(admin, partition)
    return state


def ask(admin: SyncAdmin, partition: TopicPartition) -> State:
    ends = admin.replica_ends({partition: BROKERS})[partition]
    topics = {topic.name: topic for topic in admin.describe_topics()}
    topic = topics.get(partition.topic)  # a broker may not know a new topic yet
    return State(
        {
            broker_id: Replica(end.end_offset, end.high_watermark)
            for broker_id, end in sorted(ends.items())
        },
        () if topic is None else tuple(sorted(topic.partitions[partition.partition].isr)),
    )


def show(title: str, state: State, why: str) -> None:
    print(f"{title}\n")
    print("  broker    LEO   HW")
    for broker_id in BROKERS:
        role = "leader" if broker_id == BROKERS[0] else ""
        if broker_id in state.replicas:
            replica = state.replicas[broker_id]
            row = f"{replica.log_end_offset:>3}  {replica.high_watermark:>3}  {role}"
        else:
            row = "  -    -  stopped"
        print(f"  {broker_id}         {row}".rstrip())
    print(f"  ISR: {', '.join(map(str, state.isr))}\n")
    print(f"{why}\n")


if __name__ == "__main__":
    main()
