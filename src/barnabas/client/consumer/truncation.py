"""Asks the leaders whether their logs contain the records that a consumer has read (KIP-320).

If a leader was elected without being in sync, or its disk lost the end of the log, the epoch of a
consumer's position may end before the position in that log. A consumer that continued at its
position would skip the records that have replaced the lost records.
"""

from __future__ import annotations

import logging

from barnabas.client.channel import BrokerAddress
from barnabas.client.cluster import Cluster
from barnabas.client.config import ConsumerConfig
from barnabas.client.consumer.assignment import AssignedPartition
from barnabas.client.errors import broker_error, log_truncated
from barnabas.errors import UnsupportedVersion, error_for_code
from barnabas.protocol.api import OFFSET_FOR_LEADER_EPOCH
from barnabas.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from barnabas.types import TopicPartition

_log = logging.getLogger(__name__)

_CONSUMERS_FROM = 3  # earlier versions require permission for cluster actions


class Truncation:
    """Validates doubtful positions, and moves a position if the records before it
    were truncated.
    """

    def __init__(self, cluster: Cluster, config: ConsumerConfig) -> None:
        self._cluster = cluster
        self._config = config

    async def settle(self, node: BrokerAddress, states: list[AssignedPartition]) -> None:
        """Validate doubtful positions at this leader, and move those beyond its truncated log.

        Makes a single attempt, after which positions may still be doubtful. Raises Unreachable.
        """
        doubtful = [(state, state.generation) for state in states]
        try:
            channel = await self._cluster.pool.channel(node)
            is_able = channel.version(OFFSET_FOR_LEADER_EPOCH) >= _CONSUMERS_FROM
        except UnsupportedVersion:
            is_able = False
        answers = await self._ask(node, states) if is_able else {}
        for state, generation in doubtful:
            if not state.is_current(generation):
                continue  # the user called seek, or the leader changed
            answer = answers.get(state.topic_partition)
            if not is_able:
                state.is_doubtful = False  # as for logs older than leader epochs
            elif answer is None or answer.error_code:
                self._on_error(state, 0 if answer is None else answer.error_code)
            else:
                self._judge(state, answer)

    async def _ask(
        self, node: BrokerAddress, states: list[AssignedPartition]
    ) -> dict[TopicPartition, EpochEndOffset]:
        topics: dict[str, list[OffsetForLeaderPartition]] = {}
        for state in states:
            topic, partition = state.topic_partition
            wanted = OffsetForLeaderPartition(
                partition=partition,
                current_leader_epoch=state.leader_epoch,
                leader_epoch=state.epoch,
            )
            topics.setdefault(topic, []).append(wanted)
        request = OffsetForLeaderEpochRequest(
            replica_id=-1,
            topics=[
                OffsetForLeaderTopic(topic=topic, partitions=wanted)
                for topic, wanted in topics.items()
            ],
        )
        response = await self._cluster.call(
            node, OFFSET_FOR_LEADER_EPOCH, request, OffsetForLeaderEpochResponse
        )
        return {
            TopicPartition(topic.topic, answer.partition): answer
            for topic in response.topics
            for answer in topic.partitions
        }

    def _on_error(self, state: AssignedPartition, code: int) -> None:
        if code and not error_for_code(code).retriable:
            state.error = broker_error(code, f"the end of an epoch of {state.topic_partition}")
            return
        self._cluster.metadata.request_refresh()
        now_ms = self._cluster.seams.clock.monotonic_ms()
        state.not_before_ms = now_ms + self._cluster.config.retry_backoff_ms

    def _judge(self, state: AssignedPartition, answer: EpochEndOffset) -> None:
        """Compare a position with the end of its epoch in the leader's log."""
        # The response contains the end of the largest epoch in the leader's log that is not above
        # ours. If that end is not below the position, no record that was read is missing.
        is_known = answer.leader_epoch >= 0 and answer.end_offset >= 0
        if is_known and answer.end_offset >= state.position:
            state.is_doubtful = False
            return
        diverged_at = answer.end_offset if is_known else None
        reset = self._config.auto_offset_reset
        if reset == "none":
            state.error = log_truncated(state.topic_partition, state.position, diverged_at)
            return
        _log.warning(
            "the log of %s no longer has the records read up to offset %d; resuming at %s",
            state.topic_partition,
            state.position,
            f"the {reset} offset" if diverged_at is None else f"offset {diverged_at}",
        )
        if diverged_at is None:
            state.seek_by(reset)
        else:
            state.seek(diverged_at, answer.leader_epoch)
