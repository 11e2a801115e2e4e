"""Implements the parts of `Admin` that elect leaders and reassign partitions (KIP-460, KIP-455).

A reassignment runs in the background: `alter_partition_reassignments` returns before the new
replicas have copied anything, and `list_partition_reassignments` lists the reassignments in
progress.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from barnabas.client import arguments
from barnabas.client.admin import admin_arguments
from barnabas.client.admin.admin_calls import AdminCalls
from barnabas.client.arguments import Partitions
from barnabas.client.errors import broker_error, check
from barnabas.errors import KafkaError, NotController, error_for_code
from barnabas.protocol.api import (
    ALTER_PARTITION_REASSIGNMENTS,
    ELECT_LEADERS,
    LIST_PARTITION_REASSIGNMENTS,
)
from barnabas.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from barnabas.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    TopicPartitions,
)
from barnabas.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsTopics,
)
from barnabas.types import TopicPartition, by_topic

PREFERRED, UNCLEAN = 0, 1
"""The types of leader election.

PREFERRED elects the first replica, provided that it is in sync. UNCLEAN elects any live replica of
a partition that has no leader.
"""


class Reassignment(NamedTuple):
    """The replicas of a partition that is being reassigned."""

    replicas: tuple[int, ...]  # both old and new replicas
    adding: tuple[int, ...]
    removing: tuple[int, ...]


class PartitionAdmin(AdminCalls):
    """Asks the controller to elect leaders and to move replicas."""

    async def elect_leaders(
        self, election_type: int, partitions: Partitions | None = None
    ) -> dict[TopicPartition, KafkaError | None]:
        """Hold an election (PREFERRED or UNCLEAN) for these partitions, or all that need one.

        Returns an error for each partition, or None if the election succeeded. The error is
        ElectionNotNeeded, PreferredLeaderNotAvailable, EligibleLeadersNotAvailable or
        UnknownTopicOrPartition. Raises ClusterAuthorizationFailed.
        """
        numbers = None
        if partitions is not None:
            numbers = by_topic(admin_arguments.partitions(partitions))
        request = ElectLeadersRequest(
            election_type=election_type,
            topic_partitions=None
            if numbers is None
            else [TopicPartitions(topic=name, partitions=each) for name, each in numbers.items()],
            timeout_ms=self._cluster.config.request_timeout_ms,
        )

        async def attempt() -> ElectLeadersResponse:
            answer = await self._cluster.call_controller(
                ELECT_LEADERS, request, ElectLeadersResponse
            )
            check(answer.error_code, "electing leaders")
            refuse_wrong_controller(
                each.error_code
                for topic in answer.replica_election_results
                for each in topic.partition_result
            )
            return answer

        answer = await self._persist(attempt)
        return {
            TopicPartition(topic.topic, each.partition_id): _outcome(
                TopicPartition(topic.topic, each.partition_id), each.error_code, each.error_message
            )
            for topic in answer.replica_election_results
            for each in topic.partition_result
        }

    async def alter_partition_reassignments(
        self, replicas: Mapping[TopicPartition, Sequence[int] | None]
    ) -> dict[TopicPartition, KafkaError | None]:
        """Start moving partitions to these replicas (preferred replica first). None cancels a move.

        Returns an error for each partition, or None if the move has started or was already
        complete. The error is InvalidReplicaAssignment, NoReassignmentInProgress or
        UnknownTopicOrPartition. Raises ClusterAuthorizationFailed.

            await admin.alter_partition_reassignments({TopicPartition("test", 0): [2, 3]})
        """
        topics: dict[str, list[ReassignablePartition]] = {}
        for name, wanted in arguments.by_partition(replicas, "replicas").items():
            each = ReassignablePartition(
                partition_index=name.partition,
                replicas=None if wanted is None else admin_arguments.brokers(wanted, "replicas"),
            )
            topics.setdefault(name.topic, []).append(each)
        request = AlterPartitionReassignmentsRequest(
            timeout_ms=self._cluster.config.request_timeout_ms,
            topics=[
                ReassignableTopic(name=topic, partitions=some) for topic, some in topics.items()
            ],
        )

        async def attempt() -> AlterPartitionReassignmentsResponse:
            answer = await self._cluster.call_controller(
                ALTER_PARTITION_REASSIGNMENTS, request, AlterPartitionReassignmentsResponse
            )
            check(answer.error_code, "moving partitions", answer.error_message)
            refuse_wrong_controller(
                each.error_code for topic in answer.responses for each in topic.partitions
            )
            return answer

        answer = await self._persist(attempt)
        return {
            TopicPartition(topic.name, each.partition_index): _outcome(
                TopicPartition(topic.name, each.partition_index),
                each.error_code,
                each.error_message,
            )
            for topic in answer.responses
            for each in topic.partitions
        }

    async def list_partition_reassignments(
        self, partitions: Partitions | None = None
    ) -> dict[TopicPartition, Reassignment]:
        """Return the reassignments in progress of these partitions (or of all), sorted."""
        numbers = None
        if partitions is not None:
            numbers = by_topic(admin_arguments.partitions(partitions))
        request = ListPartitionReassignmentsRequest(
            timeout_ms=self._cluster.config.request_timeout_ms,
            topics=None
            if numbers is None
            else [
                ListPartitionReassignmentsTopics(name=name, partition_indexes=each)
                for name, each in numbers.items()
            ],
        )

        async def attempt() -> ListPartitionReassignmentsResponse:
            answer = await self._cluster.call_controller(
                LIST_PARTITION_REASSIGNMENTS, request, ListPartitionReassignmentsResponse
            )
            check(answer.error_code, "listing reassignments", answer.error_message)
            return answer

        answer = await self._persist(attempt)
        found = {
            TopicPartition(topic.name, each.partition_index): Reassignment(
                tuple(each.replicas), tuple(each.adding_replicas), tuple(each.removing_replicas)
            )
            for topic in answer.topics
            for each in topic.partitions
        }
        return dict(sorted(found.items()))


def refuse_wrong_controller(codes: Iterable[int]) -> None:
    """Raise NotController if it is among the codes. Other errors do not depend on the broker."""
    # Any other error concerns a single topic or partition. The caller handles it.
    for code in codes:
        if code == NotController.code:
            raise NotController


def _outcome(name: TopicPartition, code: int, message: str | None) -> KafkaError | None:
    if not code:
        return None
    return error_for_code(code)(message) if message else broker_error(code, f"partition {name}")
