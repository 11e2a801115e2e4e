"""Moves partitions of a topic to other brokers, and cancels such moves (KIP-455)."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from barnabas.cli.partitions.reassign_plan import Replicas, propose
from barnabas.cli.partitions.reassign_throttle import (
    BROKER_SETTINGS,
    moves,
    taking_part,
    throttle,
)
from barnabas.client.admin.admin import TopicDescription
from barnabas.client.admin.configs import BROKER, ConfigResource
from barnabas.client.admin.partition_admin import Reassignment
from barnabas.client.arguments import INT32_MAX, INT64_MAX
from barnabas.client.view import PartitionView
from barnabas.console.problem import FAILURES, WebProblem, reason_of
from barnabas.console.snapshot import disk_look
from barnabas.console.writing.form import Form
from barnabas.console.writing.plan import Access, Action, Change, Plan
from barnabas.console.writing.record_actions import check_partition
from barnabas.console.writing.topic_actions import describe_topic, topic_field
from barnabas.counted import counted
from barnabas.errors import (
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    KafkaError,
    NoReassignmentInProgress,
    ReassignmentInProgress,
)
from barnabas.types import TopicPartition

_PROPOSALS: Final = 20
_SIZES_S: Final = 5.0
_THROTTLE: Final = "throttle"
Sizes = Mapping[TopicPartition, Mapping[int, int]]
Moving = Mapping[TopicPartition, Reassignment]


class Target(NamedTuple):
    """Specifies the target of a reassignment: the exact replicas, or some brokers over which to
    spread them.
    """

    replicas: Mapping[int, tuple[int, ...]]
    """The replicas of each partition. The preferred leader is the first replica."""
    brokers: tuple[int, ...] = ()
    """The brokers over which the console spreads the replicas if `replicas` is empty."""
    partition: int | None = None
    """The only partition to spread, or None to spread all partitions."""


class ReassignPartitions(Action):
    """Starts to move partitions of a topic to other brokers."""

    name = "reassign-partitions"

    def __init__(self, topic: str, target: Target, bytes_per_s: int | None) -> None:
        """`bytes_per_s` is the limit on copying. None leaves the current limits unchanged."""
        self._topic = topic
        self._target = target
        self._bytes_per_s = bytes_per_s

    @classmethod
    def parse(cls, form: Form) -> ReassignPartitions:
        """Return the action that a form describes."""
        topic = topic_field(form)
        brokers = tuple(form.wholes("brokers", least=0, most=INT32_MAX))
        partition = form.optional_whole("partition", least=0, most=INT32_MAX)
        replicas: dict[int, tuple[int, ...]] = {}
        for each in form.forms("replicas"):
            number = each.whole("partition", least=0, most=INT32_MAX)
            if number in replicas:
                raise WebProblem(400, f"replicas: partition {number} is named twice")
            replicas[number] = tuple(each.wholes("brokers", least=0, most=INT32_MAX))
            each.end()
        if bool(brokers) == bool(replicas):
            raise WebProblem(400, "brokers: give these, or the replicas of each partition")
        if replicas and partition is not None:
            raise WebProblem(400, "partition: it goes with brokers, not with replicas")
        bytes_per_s = form.optional_whole("bytes_per_s", least=1, most=INT64_MAX)
        return cls(topic, Target(replicas, brokers, partition), bytes_per_s)

    @property
    def permission(self) -> str:
        """Name the permissions that the action requires."""
        if self._bytes_per_s is None:
            return "Alter and Describe on the cluster"
        return (
            "Alter, Describe and AlterConfigs on the cluster, and AlterConfigs on the topic "
            f"{self._topic!r}"
        )

    async def plan(self, access: Access) -> Plan:
        """Return the replicas of each moving partition, before and after the move."""
        topic = await describe_topic(access, self._topic)
        cluster = await access.admin.describe_cluster()
        racks = {each.broker_id: each.rack for each in cluster.brokers}
        moving = await access.admin.list_partition_reassignments()
        views = {TopicPartition(topic.name, each.partition): each for each in topic.partitions}
        # Check this first, because the replicas of a moving partition include its future ones.
        check_idle(self._names(topic), moving)
        wanted = {
            name: to
            for name, to in self._wanted(topic, racks).items()
            if views[name].replicas != to
        }
        _check(wanted, views, racks)
        sizes = await _sizes(access) if wanted else {}
        changes = [
            Change(
                str(name),
                _ids(views[name].replicas),
                _ids(to),
                _about(views[name], to, _size(sizes, name, views[name])),
            )
            for name, to in sorted(wanted.items())
        ]
        if self._bytes_per_s is not None and changes:
            before = {name: view.replicas for name, view in views.items()}
            brokers = taking_part(moves(moving, wanted, before))
            changes.append(await _throttle_change(access, brokers, self._bytes_per_s))
        return Plan(
            f"reassign partitions of topic {topic.name}",
            tuple(changes),
            (_total_sentence(wanted, views, sizes),) if wanted else (_NOTHING,),
            tuple(self._warnings(moving)) if wanted else (),
            {"topic_id": topic.topic_id.hex()},
        )

    def as_planned(self, plan: Plan) -> ReassignPartitions:
        """Return the reassignment to the replicas in the plan, because a new proposal
        might differ.
        """
        replicas = {name.partition: to for name, to in _replicas(plan).items()}
        return ReassignPartitions(self._topic, Target(replicas), self._bytes_per_s)

    async def apply(self, access: Access, plan: Plan) -> list[str]:
        """Start the moves."""
        wanted = _replicas(plan)
        sentences = []
        if self._bytes_per_s is not None:
            # Set the throttle first, so that nothing is copied at an unlimited rate.
            before = {_name(change): _brokers(change.before) for change in _moves_of(plan)}
            moving = await access.admin.list_partition_reassignments()
            await throttle(access.admin, moves(moving, wanted, before), self._bytes_per_s)
            sentences.append(f"The throttle was set to {_rate(self._bytes_per_s)}.")
        outcomes = await access.admin.alter_partition_reassignments(wanted)
        failed = _failures(outcomes)
        if failed and len(failed) == len(wanted):
            raise WebProblem(
                422, " ".join((f"no reassignment was started: {'; '.join(failed[:3])}", *sentences))
            )
        count = counted(len(wanted) - len(failed), "partition")
        started = f"The reassignment of {count} was started. The page of the topic shows it."
        return [started, *sentences, *failed]

    def _names(self, topic: TopicDescription) -> list[TopicPartition]:
        """Return the partitions that may move. Raises a `WebProblem` if one does not exist."""
        target = self._target
        numbers = list(target.replicas)
        if target.partition is not None:
            numbers = [target.partition]
        for number in numbers:
            check_partition(topic, number)
        return [
            TopicPartition(topic.name, each) for each in numbers or range(len(topic.partitions))
        ]

    def _wanted(self, topic: TopicDescription, racks: Mapping[int, str | None]) -> Replicas:
        target = self._target
        if target.replicas:
            return {TopicPartition(topic.name, each): to for each, to in target.replicas.items()}
        brokers = target.brokers
        if len(set(brokers)) < len(brokers):
            raise InvalidReplicaAssignment(f"Duplicate broker ids in the list: {_ids(brokers)}")
        _check_alive(brokers, racks)
        factor = len(topic.partitions[target.partition or 0].replicas)
        if factor > len(brokers):
            raise InvalidReplicationFactor(
                f"Replication factor: {factor} larger than available brokers: {len(brokers)}"
            )
        return _proposal(topic, {each: racks[each] for each in brokers}, target.partition)

    def _warnings(self, moving: Moving) -> Iterable[str]:
        if moving:
            yield (
                f"The cluster is already reassigning {counted(len(moving), 'other partition')}. A "
                "throttle is for all of them together."
            )
        if self._bytes_per_s is None:
            yield "The brokers copy as fast as they can, which can slow down clients."
        else:
            yield (
                "The throttle stays until somebody clears it: when the reassignment has ended, use "
                "“Clear throttles” on the page of this topic."
            )


class CancelReassignment(Action):
    """Cancels the reassignment of a topic's partitions."""

    name = "cancel-reassignment"

    def __init__(self, topic: str, partition: int | None) -> None:
        """If `partition` is None, the reassignments of all partitions are cancelled."""
        self._topic = topic
        self._partition = partition

    @classmethod
    def parse(cls, form: Form) -> CancelReassignment:
        """Return the action that a form describes."""
        topic = topic_field(form)
        return cls(topic, form.optional_whole("partition", least=0, most=INT32_MAX))

    @property
    def permission(self) -> str:
        """Name the permissions that the action requires."""
        return "Alter and Describe on the cluster"

    async def plan(self, access: Access) -> Plan:
        """Return the replicas of each moving partition, now and after the cancellation."""
        topic = await describe_topic(access, self._topic)
        if self._partition is not None:
            check_partition(topic, self._partition)
        names = [
            TopicPartition(topic.name, each.partition)
            for each in topic.partitions
            if self._partition in (None, each.partition)
        ]
        moving = await access.admin.list_partition_reassignments(names)
        changes = [
            Change(
                str(name),
                f"{_ids(each.replicas)} ({_moves_text(each.adding, each.removing)})",
                _ids(broker for broker in each.replicas if broker not in each.adding),
            )
            for name, each in moving.items()
        ]
        return Plan(
            f"cancel the reassignment of topic {topic.name}",
            tuple(changes),
            ("What the new replicas have copied is deleted. Throttles stay as they are.",)
            if changes
            else ("No such partition is being reassigned.",),
            (),
            {"topic_id": topic.topic_id.hex()},
        )

    async def apply(self, access: Access, plan: Plan) -> list[str]:
        """Cancel the moves."""
        names = [_name(change) for change in plan.changes]
        outcomes = await access.admin.alter_partition_reassignments(dict.fromkeys(names))
        ended = [
            f"{name}: its reassignment had already ended."
            for name, error in sorted(outcomes.items())
            if isinstance(error, NoReassignmentInProgress)
        ]
        failed = _failures(
            {
                name: error
                for name, error in outcomes.items()
                if not isinstance(error, NoReassignmentInProgress)
            }
        )
        count = len(names) - len(failed) - len(ended)
        if failed and not count:
            raise WebProblem(422, f"nothing was cancelled: {'; '.join(failed[:3])}")
        partitions = counted(count, "partition")
        return [f"The reassignment of {partitions} was cancelled.", *ended, *failed]


_NOTHING: Final = "Each partition already has these replicas."


def _proposal(
    topic: TopicDescription, racks: Mapping[int, str | None], partition: int | None
) -> Replicas:
    """Return a proposal of `reassign --generate`. If there are several, choose one that copies
    little data.
    """
    there = {
        TopicPartition(topic.name, each.partition): each.replicas
        for each in topic.partitions
        if partition in (None, each.partition)
    }
    if partition is not None:
        # In the proposal, each partition has as many replicas as most partitions have.
        replicas = topic.partitions[partition].replicas
        alike = (each._replace(replicas=replicas) for each in topic.partitions)
        topic = topic._replace(partitions=tuple(alike))

    def proposal_from(start: int) -> Replicas:
        whole = propose([topic], racks, start)
        return {name: to for name, to in whole.items() if name in there}

    def copies(replicas: Replicas) -> int:
        return sum(len(set(to) - set(there[name])) for name, to in replicas.items())

    # The first broker is chosen at random. Otherwise, the proposals for all topics would favour the
    # same broker.
    starts = random.sample(range(len(racks)), min(_PROPOSALS, len(racks)))
    return min(map(proposal_from, starts), key=copies)


def _check(
    wanted: Replicas,
    views: Mapping[TopicPartition, PartitionView],
    racks: Mapping[int, str | None],
) -> None:
    """Reject, in Kafka's words, a reassignment that the controller would reject."""
    for name, replicas in wanted.items():
        if not replicas:
            raise InvalidReplicaAssignment(
                f"{name}: Empty replica list specified in partition reassignment."
            )
        if len(set(replicas)) < len(replicas):
            raise InvalidReplicaAssignment(
                f"{name}: Duplicate replica ids in partition reassignment replica list: "
                f"{_ids(replicas)}"
            )
        # A replica that is already there may be offline.
        _check_alive([each for each in replicas if each not in views[name].replicas], racks)


def check_idle(names: Iterable[TopicPartition], moving: Moving) -> None:
    """Reject partitions that are already being reassigned, because Kafka would replace the current
    reassignment.
    """
    busy = sorted(moving.keys() & set(names))
    if busy:
        raise ReassignmentInProgress(
            f"A partition reassignment is in progress for {', '.join(map(str, busy[:3]))}: wait "
            "until it has ended, or cancel it"
        )


def _check_alive(brokers: Sequence[int], racks: Mapping[int, str | None]) -> None:
    if set(brokers) - racks.keys():
        raise InvalidReplicaAssignment(
            f"Replica assignment has brokers that are not alive. Replica list: {_ids(brokers)}, "
            f"live broker list: {_ids(sorted(racks))}"
        )


async def _sizes(access: Access) -> Sizes:
    """Return the size of each replica in bytes, or nothing if the brokers do not report
    the sizes.
    """
    try:
        async with asyncio.timeout(_SIZES_S):
            return disk_look(await access.admin.describe_log_dirs()).sizes
    except FAILURES:
        return {}


def _size(sizes: Sizes, name: TopicPartition, view: PartitionView) -> int | None:
    """Return the size of a copy of the partition."""
    own = sizes.get(name, {})
    return own.get(view.leader, max(own.values(), default=None))


def _about(view: PartitionView, to: tuple[int, ...], size: int | None) -> str:
    added = [each for each in to if each not in view.replicas]
    text = _moves_text(added, [each for each in view.replicas if each not in to])
    if not added:
        return text or "only the order changes"
    copied = "bytes not known" if size is None else f"{len(added) * size:,} bytes"
    return f"{text}; copies {copied}"


def _moves_text(added: Sequence[int], removed: Sequence[int]) -> str:
    parts = []
    if added:
        parts.append(f"adds {_ids(added)}")
    if removed:
        parts.append(f"removes {_ids(removed)}")
    return ", ".join(parts)


def _total_sentence(
    wanted: Replicas, views: Mapping[TopicPartition, PartitionView], sizes: Sizes
) -> str:
    total = 0
    for name, to in wanted.items():
        added = len(set(to) - set(views[name].replicas))
        size = _size(sizes, name, views[name])
        if added and size is None:
            return (
                "It is not known how many bytes will be copied: a broker does not report its sizes."
            )
        total += added * (size or 0)
    if not total:
        return "No bytes need to be copied."
    return f"About {counted(total, 'byte')} will be copied, and more while records arrive."


async def _throttle_change(access: Access, brokers: Sequence[int], bytes_per_s: int) -> Change:
    """Return the throttle of the participating brokers, before and after the change."""
    found = set()
    for broker_id in brokers:
        entries = await access.admin.describe_configs(
            ConfigResource(BROKER, str(broker_id)), BROKER_SETTINGS[:2]
        )
        found |= {each.value for each in entries}
    texts = sorted(_rate(int(each)) for each in found if each and int(each) < INT64_MAX)
    before = " or ".join([*texts, *(["none"] if len(texts) < len(found) else [])])
    where = f"of broker{'s' * (len(brokers) != 1)} {_ids(brokers)}"
    return Change(f"{_THROTTLE} {where}", before or "none", _rate(bytes_per_s))


def _rate(bytes_per_s: int) -> str:
    return f"{counted(bytes_per_s, 'byte')}/s"


def _failures(outcomes: Mapping[TopicPartition, KafkaError | None]) -> list[str]:
    return [
        f"{name}: {reason_of(error)}"
        for name, error in sorted(outcomes.items())
        if error is not None
    ]


def _moves_of(plan: Plan) -> list[Change]:
    """Return the changes in a plan, except changes to the throttle."""
    return [each for each in plan.changes if not each.what.startswith(f"{_THROTTLE} ")]


def _replicas(plan: Plan) -> Replicas:
    return {_name(change): _brokers(change.after) for change in _moves_of(plan)}


def _name(change: Change) -> TopicPartition:
    """Return the partition named in a change. A topic's name may contain dashes."""
    topic, _, number = change.what.rpartition("-")
    return TopicPartition(topic, int(number))


def _brokers(text: str | None) -> tuple[int, ...]:
    return tuple(int(each) for each in (text or "").split(",") if each)


def _ids(brokers: Iterable[int]) -> str:
    return ",".join(map(str, brokers))
