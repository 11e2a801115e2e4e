"""What must be true at the end, rule by rule, and how much each rule had to judge.

As Jepsen's workload for Kafka judges: lost, doubled or moved records, records of transactions that
were aborted, transactions in halves, readers that skip or go back.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from barnabas.client import SyncAdmin
from barnabas.client.offsets import LATEST
from barnabas.records.batch import iterate_batches
from barnabas.records.record import iterate_records
from barnabas.types import TopicPartition
from tests.integration.soak.compacting import wrongly_compacted
from tests.integration.soak.readings import Readers, Reading
from tests.integration.soak.transactions import ABORTED, COMMITTED
from tests.integration.soak.work import COPIES, DEADLINE_S, GROUP, JAVA_GROUP, Work
from tests.kit.clients import confluent_client
from tests.kit.clients.clients import Seen
from tests.kit.processes.cluster_load import Load, committed_values, partitions_of
from tests.kit.processes.cluster_process import ClusterProcess, data_files
from tests.kit.processes.java_at_work import Acknowledged, JavaAtWork
from tests.kit.processes.java_at_work import Reading as JavaReading
from tests.kit.processes.senders import PARTITIONS
from tests.kit.waiting import wait_until

INTERNAL = {"__consumer_offsets": 6, "__transaction_state": 6}
_ENDED = ("Empty", "CompleteCommit", "CompleteAbort", "Dead")
_MOST_SHOWN = 5
COPIED_S = 300.0  # it may lag behind: a transaction for ten records

Stored = dict[tuple[int, int], bytes]
"""By partition and offset."""
Kept = dict[bytes | None, tuple[int, bytes | None]]
"""Offset and value by key."""


class Judged(NamedTuple):
    rule: str
    total: int
    wrong: list[str]

    def __str__(self) -> str:
        shown = "".join(f"\n    {each}" for each in self.wrong[:_MOST_SHOWN])
        state = f"{len(self.wrong)} WRONG" if self.wrong else "ok" if self.total else "NOTHING"
        return f"{self.total} {self.rule}: {state}{shown}"


def judge(cluster: ClusterProcess, work: Work) -> list[Judged]:
    """After `Work.finish`; the brokers still run."""
    servers = cluster.bootstrap_servers
    fast = stored_in(servers, work.fast)
    judged = [
        sent_once("records of confluent-kafka", work.fast, fast),
        sent_once("records of our producer", work.slow, stored_in(servers, work.slow)),
        judge_transactions(servers, work),
        _zombies(work),
        read_as_stored("readings of everything", readings_of(work.everything), fast),
        read_as_stored("readings by the group", readings_of(work.members), fast),
        read_by_somebody("of everything", work.everything, fast),
        read_by_somebody(f"in group {GROUP}", work.members, fast),
        never_back(work.commits),
        copied_once(servers, work),
        compacted(work),
        passed(work),
    ]
    if work.java is not None:
        judged += judge_java(servers, work.java)
    return [*judged, transactions_end(servers), equal_replicas(cluster, work), agree(cluster, work)]


def stored_in(servers: str, load: Load) -> Stored:
    seen = confluent_client.consume(servers, load.topic, PARTITIONS, log_size(servers, load.topic))
    return _stored(seen)


def _stored(seen: Iterable[Seen]) -> Stored:
    return {(one.partition, one.offset): one.value or b"" for one in seen}


def log_size(servers: str, topic: str) -> int:
    names = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    with SyncAdmin(servers) as admin:
        found = admin.list_offsets(dict.fromkeys(names, LATEST))
    return sum(each.offset for each in found.values())


# ---- producers ----


def sent_once(what: str, load: Load, stored: Stored) -> Judged:
    """Acknowledged, once, in order, and nothing else is there."""
    wrong = [f"{load.topic}: given up: {each}" for each in load.failed]
    for partition in range(PARTITIONS):
        found = [int(stored[key]) for key in sorted(stored) if key[0] == partition]
        wanted = list(range(partition, load.sent_count, PARTITIONS))
        wrong += differences(f"{load.topic}-{partition}", found, wanted)
    return Judged(f"{what}, acknowledged, are there once and in order", load.sent_count, wrong)


def differences(where: str, found: list[int], wanted: list[int]) -> list[str]:
    """What is missing, is there twice or without reason, else the first that is out of order."""
    counts, wants = Counter(found), Counter(wanted)
    lost, more = sorted((wants - counts).elements()), sorted((counts - wants).elements())
    if lost or more:
        return [f"{where}: lost {lost[:9]} ({len(lost)}), too many {more[:9]} ({len(more)})"]
    pairs = zip(found, wanted, strict=True)
    return [f"{where}: {one} in the place of {other}" for one, other in pairs if one != other][:1]


# ---- transactions ----


def judge_transactions(servers: str, work: Work) -> Judged:
    wrong: list[str] = []
    for each in work.transactions:
        found = list(map(int, committed_values(servers, each.topic, PARTITIONS)))
        wrong += [*each.wrong, *untrue_outcomes(each.topic, each.outcomes, found)]
    count = sum(len(each.outcomes) for each in work.transactions)
    return Judged("transactions are whole or absent, as was reported", count, wrong)


def untrue_outcomes(topic: str, outcomes: list[str], found: list[int]) -> list[str]:
    """`found`: the numbers of the transactions whose records are there, one for each partition."""
    copies = Counter(found)
    wrong = [f"{topic}: {number} was never sent" for number in copies if number >= len(outcomes)]
    for number, outcome in enumerate(outcomes):
        allowed = {COMMITTED: (PARTITIONS,), ABORTED: (0,)}.get(outcome, (0, PARTITIONS))
        if copies[number] not in allowed:
            wrong.append(f"{topic}: {number} was {outcome}, {copies[number]} are there")
    return wrong


def _zombies(work: Work) -> Judged:
    count = sum(each.fenced_count for each in work.transactions)
    return Judged("producers that were replaced in a transaction were fenced", count, [])


def copied_once(servers: str, work: Work) -> Judged:
    """The copy job's output is its input."""
    wanted = list(range(work.slow.sent_count))
    wrong: list[str] = []
    try:
        wait_until(lambda: work.copying.committed() == len(wanted), COPIED_S)
    except AssertionError:
        wrong.append(f"not all were copied in {COPIED_S:.0f} s")
    found = list(map(int, committed_values(servers, COPIES, PARTITIONS)))
    wrong += differences(COPIES, sorted(found), wanted)
    for partition in range(PARTITIONS):
        own = [number for number in found if number % PARTITIONS == partition]
        if own != sorted(own):
            wrong.append(f"{COPIES}-{partition} is not in order")
    lives = f"{work.copying.lives} copy jobs, {work.copying.hung} of which hung"
    return Judged(f"records copied once, by {lives}", len(found), wrong)


# ---- topics that change ----


def compacted(work: Work) -> Judged:
    sent, found = work.compacting.acknowledged, work.compacting.read()
    wrong = [f"given up: {each}" for each in work.compacting.failed]
    wrong += wrongly_compacted(sent, found)
    return Judged(f"records of {len(sent)} are left by compaction, the newest of each key among "
                  "them", len(found), wrong)  # fmt: skip


def passed(work: Work) -> Judged:
    whole, lives = work.passing.whole_lives, work.passing.lives
    rule = f"of {lives} topics of one name were read back, each its own, and deleted"
    return Judged(rule, whole, work.passing.wrong)


def transactions_end(servers: str) -> Judged:
    found: dict[str, str] = {}

    def have_ended() -> bool:
        with SyncAdmin(servers) as admin:
            found.update({one.transactional_id: one.state for one in admin.list_transactions()})
        return all(state in _ENDED for state in found.values())

    return _waited("transactional ids have nothing open", have_ended, found)


# ---- readers ----


def read_as_stored(
    what: str, readers: Iterable[list[Reading] | list[JavaReading]], stored: Stored
) -> Judged:
    """A record never changes once it is read; no reader skips or goes back within an assignment."""
    wrong: list[str] = []
    count = 0
    for number, readings in enumerate(readers):
        count += len(readings)
        owned: dict[tuple[int, int], list[int]] = defaultdict(list)
        for one in readings:
            there = stored.get((one.partition, one.offset))
            if there != one.value:
                wrong.append(f"{one.partition}@{one.offset}: {one.value!r} was read, is {there!r}")
            owned[one.assignment, one.partition].append(one.offset)
        for (assignment, partition), offsets in owned.items():
            wrong += [
                f"reader {number}, assignment {assignment}: {partition}@{later} after {before}"
                for before, later in itertools.pairwise(offsets)
                if later != before + 1
            ]
    return Judged(f"{what} are of what is stored, without gaps", count, wrong)


def readings_of(readers: Readers) -> list[list[Reading]]:
    return [each.readings for each in readers.all]


def read_by_somebody(who: str, readers: Readers, stored: Stored) -> Judged:
    read = {(one.partition, one.offset) for each in readers.all for one in each.readings}
    missing = sorted(stored.keys() - read)
    wrong = [f"{partition}@{offset} was read by no client" for partition, offset in missing]
    clients = f"{len(readers.all)} readers {who}, {readers.hung} of which hung"
    return Judged(f"records were read by {clients}", len(stored), wrong)


def never_back(commits: list[Mapping[TopicPartition, int]]) -> Judged:
    wrong = [
        f"{name}: committed {before[name]}, later {after.get(name)}"
        for before, after in itertools.pairwise(commits)
        for name in before
        if after.get(name, -1) < before[name]
    ]
    return Judged("times the group's committed offsets had not gone back", len(commits), wrong)


# ---- Java ----


def judge_java(servers: str, java: JavaAtWork) -> list[Judged]:
    acknowledged = java.finish()
    stored = stored_in(servers, java)
    reported = {(one.partition, one.offset): b"%d" % one.number for one in acknowledged}
    wrong = [f"given up: {each!r}" for each in java.failed]
    moved = [key for key in reported.keys() | stored.keys() if reported.get(key) != stored.get(key)]
    wrong += [
        f"{key}: reported {reported.get(key)!r}, is {stored.get(key)!r}" for key in sorted(moved)
    ]
    wrong += unordered(acknowledged)
    wanted = set(range(java.sent_count))
    missing: set[int] = set()

    def is_read() -> bool:
        missing.clear()
        missing.update(wanted - java.values_read())
        return not missing

    return [
        Judged(
            "records of Java are where they were reported, once and in order", len(reported), wrong
        ),
        _waited(f"records were read by somebody in group {JAVA_GROUP}", is_read, missing, wanted),
        read_as_stored("readings by Java's group", java.readings.values(), stored),
    ]


def unordered(acknowledged: list[Acknowledged]) -> list[str]:
    last: dict[int, int] = {}
    wrong = []
    for one in sorted(acknowledged, key=lambda each: (each.partition, each.offset)):
        if one.number <= last.get(one.partition, -1):
            wrong.append(f"{one} is behind {last[one.partition]}")
        last[one.partition] = one.number
    return wrong


# ---- brokers ----


def equal_replicas(cluster: ClusterProcess, work: Work) -> Judged:
    """To the byte; those of the internal topics too. Where a clock that was ahead has ended a
    segment of these it is compacted, by each broker in its own time: there the newest value of each
    key is equal."""
    partitions = [(topic, number) for topic in work.topics for number in range(PARTITIONS)]
    partitions += [(topic, number) for topic, count in INTERNAL.items() for number in range(count)]
    different: set[str] = set()

    def are_equal() -> bool:
        different.clear()
        for topic, number in partitions:
            files = data_files(cluster, topic, number)
            if len(files) == len(cluster.brokers) and are_alike(list(files.values())):
                continue
            sizes = {broker_id: len(content) for broker_id, content in files.items()}
            different.add(f"{topic}-{number}: bytes by broker {sizes}")
        return not different

    return _waited("partitions have equal replicas", are_equal, different, partitions)


def are_alike(replicas: Sequence[bytes]) -> bool:
    """Whether these are the segments of one partition."""
    if len(set(replicas)) == 1:
        return True
    if not any(map(has_horizons, replicas)):
        return False
    first, *others = map(kept_of, replicas)
    return all(each == first for each in others)


def kept_of(segments: bytes) -> Kept:
    """The newest value of each key, with its offset: what compaction leaves in any case."""
    newest = {record.key: (record.offset, record.value) for record in iterate_records(segments)}
    return {key: last for key, last in newest.items() if last[1] is not None}


def has_horizons(segments: bytes) -> bool:
    """Whether it was compacted: a time from which something may go stands in it (KIP-534)."""
    return any(header.has_delete_horizon for _, header in iterate_batches(segments))


def agree(cluster: ClusterProcess, work: Work) -> Judged:
    """All brokers say the same of leaders and members."""
    different: set[str] = set()

    def do_agree() -> bool:
        different.clear()
        for topic in work.topics:
            answers = {
                tuple((one.leader, *sorted(one.isrs)) for one in partitions_of(servers, topic))
                for servers in (each.bootstrap_servers for each in cluster.brokers.values())
            }
            if len(answers) != 1:
                different.add(f"{topic}: {sorted(answers)}")
        return not different

    return _waited("topics are described alike by all brokers", do_agree, different, work.topics)


def _waited(
    rule: str,
    is_true: Callable[[], bool],
    left: Iterable[object],
    judged: Iterable[object] | None = None,
) -> Judged:
    """What becomes true in time; else what is `left`. `judged`: what there is, if not that."""
    try:
        wait_until(is_true, DEADLINE_S)
    except AssertionError:
        wrong = [f"not after {DEADLINE_S:.0f} s: {left}"]
    else:
        wrong = []
    return Judged(rule, len(list(left if judged is None else judged)), wrong)
