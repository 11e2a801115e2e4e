"""Formats log lines about leaders, ISRs and reassignments in the same way as Kafka 3.9.

    [Broker id=1] Leader t-0 with topic id Some(...) starts at leader epoch 4 from offset 10 ...
    [Broker id=2] Follower t-0 starts at leader epoch 4 from offset 10 ... Current leader is 1. ...
    [Partition t-0 broker=1] Shrinking ISR from 1,2,3 to 1,2. Leader: (highWatermark: 8, ...
    [Partition t-0 broker=1] ISR updated to 1,2 and version updated to 7
    [Controller id=1] Updating assignment of partition t-0 from 1,2 to 3,2 ...

Each partition has its own line, unless a request contains many partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

from barnabas.cluster.image import NO_LEADER, PartitionImage
from barnabas.named_tuple import NamedTuple
from barnabas.types import TopicPartition, uuid_text

if TYPE_CHECKING:
    from barnabas.cluster.controller_requests import IsrAnswer, IsrProposal
    from barnabas.controller.decision import PartitionChange
    from barnabas.replication.partition import Partition

T = TypeVar("T")

MOST_LINES = 10
"""If there are more partitions than this in a request, they share a line."""
_NAMED = 3


class RoleChange(NamedTuple):
    """A replica that becomes the leader or a follower in a new leader epoch, and its previous
    state.
    """

    partition: Partition
    image: PartitionImage
    log_end_offset: int
    previous_leader: int
    previous_epoch: int
    cause: str = ""
    """The reason that the controller gave for this decision, if any. The text has not been made
    printable yet.
    """


def role_lines(broker_id: int, changes: Sequence[RoleChange]) -> list[str]:
    """Return the lines about the local replicas that were changed by a single LeaderAndIsr."""
    lines: list[str] = []
    for role, line_of in (("leader", _leader_line), ("follower", _follower_line)):
        of_role = [each for each in changes if each.partition.is_leader == (role == "leader")]
        lines += _few_or_one(
            of_role,
            line_of,
            f"[Broker id={broker_id}] Transitioning {len(of_role)} partition(s) to local {role}s",
            lambda change: str(change.partition.topic_partition),
        )
    return lines


def role_line(change: RoleChange) -> str:
    """Return the line about a single replica."""
    return _leader_line(change) if change.partition.is_leader else _follower_line(change)


def shrink_lines(shrinks: Sequence[tuple[Partition, IsrProposal]]) -> list[str]:
    """Return the lines about leaders' proposals to remove lagging replicas from their ISRs."""
    count = len(shrinks)
    broker_id = shrinks[0][0].broker_id if shrinks else -1
    return _few_or_one(
        shrinks,
        lambda shrink: _shrink_line(*shrink),
        f"[Broker id={broker_id}] Shrinking ISR of {count} partition(s)",
        lambda shrink: f"{shrink[0].topic_partition} from {_ids(shrink[0].isr)} to {_new(shrink)}",
    )


def is_shrink(partition: Partition, proposal: IsrProposal) -> bool:
    """Return whether the proposal removes any replica from the ISR."""
    return not set(partition.isr).issubset(member.broker_id for member in proposal.isr)


def update_lines(updates: Sequence[tuple[Partition, IsrAnswer]]) -> list[str]:
    """Return the lines about ISR changes that the controller has accepted."""
    broker_id = updates[0][0].broker_id if updates else -1
    return _few_or_one(
        updates,
        lambda update: update_line(*update),
        f"[Broker id={broker_id}] ISR updated of {len(updates)} partition(s)",
        lambda update: f"{update[0].topic_partition} to {_ids(update[1].isr)}",
    )


def reassignment_lines(
    controller_id: int, steps: Sequence[tuple[TopicPartition, PartitionImage, PartitionImage]]
) -> list[str]:
    """Return the lines about reassignments that are started or ended by a decision.

    `steps` contains each partition as it was before the step and as it is after it.
    """
    begun = [step for step in steps if _begins(*step[1:])]
    ended = [step for step in steps if _ends(*step[1:])]
    who = f"[Controller id={controller_id}]"
    return [
        *_few_or_one(
            begun,
            lambda step: (
                f"{who} Updating assignment of partition {step[0]} from {_ids(step[1].replicas)} "
                f"to {_targets(step[2])}: adding replicas {_list(step[2].adding)}, "
                f"removing replicas {_list(step[2].removing)}"
            ),
            f"{who} Updating assignment of {len(begun)} partition(s)",
            lambda step: f"{step[0]} to {_targets(step[2])}",
        ),
        *_few_or_one(
            ended,
            lambda step: (
                f"{who} Updated assigned replicas for partition {step[0]} being reassigned to "
                f"{_ids(step[2].replicas)}"
            ),
            f"{who} Updated assigned replicas for {len(ended)} partition(s) being reassigned",
            lambda step: f"{step[0]} to {_ids(step[2].replicas)}",
        ),
    ]


def election_lines(who: str, changes: Sequence[PartitionChange]) -> list[str]:
    """Return the lines about leaders and ISRs that have been changed by the controller."""
    return _few_or_one(
        changes,
        lambda change: election_line(who, change),
        f"{who} Changed {len(changes)} partition(s)",
        lambda change: f"{change.name} to leader {change.became.leader} ({change.cause})",
    )


def election_line(who: str, change: PartitionChange) -> str:
    """Return the line about a single change of a leader or an ISR, and its cause."""
    was, became = change.was, change.became
    recovery = "RECOVERING" if change.is_unclean else "RECOVERED"
    return (
        f"{who} Changed partition {change.name} from {_state(was)} to {_state(became)} with state "
        f"LeaderAndIsr(leader={became.leader}, leaderEpoch={became.leader_epoch}, "
        f"isr=List({', '.join(map(str, became.isr))}), leaderRecoveryState={recovery}, "
        f"partitionEpoch={became.partition_epoch}): {change.cause}"
    )


def _state(partition: PartitionImage) -> str:
    return "OfflinePartition" if partition.leader == NO_LEADER else "OnlinePartition"


def _few_or_one(
    items: Sequence[T], line_of: Callable[[T], str], heading: str, short: Callable[[T], str]
) -> list[str]:
    # A thousand changes of leaders must not flood the log.
    if len(items) <= MOST_LINES:
        return [line_of(item) for item in items]
    named = ", ".join(short(item) for item in items[:_NAMED])
    return [f"{heading}: {named} and {len(items) - _NAMED} more"]


def _leader_line(change: RoleChange) -> str:
    partition, image = change.partition, change.image
    return (
        f"[Broker id={partition.broker_id}] Leader {partition.topic_partition} with topic id "
        f"Some({uuid_text(partition.topic_id)}) starts at leader epoch {image.leader_epoch} from "
        f"offset {change.log_end_offset} with partition epoch {image.partition_epoch}, high "
        f"watermark {partition.high_watermark}, ISR {_list(image.isr)}, adding replicas "
        f"{_list(image.adding)} and removing replicas {_list(image.removing)}"
        f"{_under_min_isr(partition)}. {_previously(change)}"
    )


def _follower_line(change: RoleChange) -> str:
    partition, image = change.partition, change.image
    return (
        f"[Broker id={partition.broker_id}] Follower {partition.topic_partition} starts at leader "
        f"epoch {image.leader_epoch} from offset {change.log_end_offset} with partition epoch "
        f"{image.partition_epoch} and high watermark {partition.high_watermark}. Current leader is "
        f"{image.leader}. {_previously(change)}"
    )


def _previously(change: RoleChange) -> str:
    leader = change.previous_leader
    shown = "None" if leader == NO_LEADER else f"Some({leader})"
    return f"Previous leader {shown} and previous leader epoch was {change.previous_epoch}."


def _shrink_line(partition: Partition, proposal: IsrProposal) -> str:
    kept = {member.broker_id for member in proposal.isr}
    out_of_sync = " ".join(
        f"(brokerId: {broker_id}, endOffset: {partition.follower_end_offset(broker_id)})"
        for broker_id in partition.isr
        if broker_id not in kept
    )
    return (
        f"{_who(partition)} Shrinking ISR from {_ids(partition.isr)} to "
        f"{_new((partition, proposal))}. Leader: (highWatermark: {partition.high_watermark}, "
        f"endOffset: {partition.log_end_offset}). Out of sync replicas: {out_of_sync}."
    )


def update_line(partition: Partition, answer: IsrAnswer) -> str:
    """Return the line about a single ISR change that has been accepted."""
    return (
        f"{_who(partition)} ISR updated to {_ids(answer.isr)}{_under_min_isr(partition)} and "
        f"version updated to {answer.partition_epoch}"
    )


def _who(partition: Partition) -> str:
    return f"[Partition {partition.topic_partition} broker={partition.broker_id}]"


def _under_min_isr(partition: Partition) -> str:
    return "" if partition.has_enough_in_sync() else " (under-min-isr)"


def _new(shrink: tuple[Partition, IsrProposal]) -> str:
    return _ids(member.broker_id for member in shrink[1].isr)


def _begins(was: PartitionImage, became: PartitionImage) -> bool:
    moves = bool(became.adding or became.removing)
    return moves and (was.adding, was.removing) != (became.adding, became.removing)


def _ends(was: PartitionImage, became: PartitionImage) -> bool:
    was_moving = bool(was.adding or was.removing)
    is_moving = bool(became.adding or became.removing)
    return not is_moving and (was_moving or set(was.replicas) != set(became.replicas))


def _targets(partition: PartitionImage) -> str:
    return _ids(each for each in partition.replicas if each not in partition.removing)


def _ids(broker_ids: Iterable[int]) -> str:
    return ",".join(map(str, broker_ids))


def _list(broker_ids: Iterable[int]) -> str:
    return f"[{_ids(broker_ids)}]"
