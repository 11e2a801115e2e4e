"""Writes ISR changes to the metadata store if inter.broker.protocol.version is below 2.7 (RE-9).

A leader writes the state node of a partition on condition that the node still has the version that
the leader last saw. If another broker has written the node, the write fails, and the controller
sends the current state. As in Kafka, the controller is not notified of each change immediately but
of many changes at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from barnabas.broker.inter_broker import isr_change_notifications as isr_notifications
from barnabas.cluster import layout
from barnabas.cluster.controller_requests import IsrAnswer, IsrProposal
from barnabas.cluster.layout import StateNode
from barnabas.cluster.store import BadVersion, MetadataError, NoNode, Set, Znode
from barnabas.errors import NONE, CorruptData, InvalidUpdateVersion, UnknownTopicOrPartition
from barnabas.types import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.cluster_view import ClusterView
    from barnabas.broker.partitions.alter_partition_queue import PendingProposal
    from barnabas.clock import Clock
    from barnabas.cluster.store import MetadataStore
    from barnabas.replication.partition import Partition

_log = logging.getLogger(__name__)

_AT_ONCE = 500

_Wanted = tuple[IsrProposal, StateNode]
_Answers = dict[TopicPartition, IsrAnswer]


class Pace(NamedTuple):
    """The timing of notifications to the controller. The values are fixed, as in Kafka."""

    check_every_ms: int = 2_500
    linger_ms: int = 5_000  # after the last change, because another change may follow
    max_delay_ms: int = 60_000  # after the last notification, if changes keep coming


class ZkAlterPartition:
    """Approves ISR changes by writing them and notifies the controller, until `close` is called."""

    __slots__ = (
        "_changed",
        "_changed_at_ms",
        "_clock",
        "_notified_at_ms",
        "_pace",
        "_store",
        "_task",
        "_view",
    )

    def __init__(
        self, view: ClusterView, store: MetadataStore, clock: Clock, pace: Pace | None = None
    ) -> None:
        self._view = view
        self._store = store
        self._clock = clock
        self._pace = Pace() if pace is None else pace
        # changes that the controller has not been notified of yet
        self._changed: dict[TopicPartition, None] = {}
        self._changed_at_ms = self._notified_at_ms = clock.monotonic_ms()
        self._task: asyncio.Task[None] | None = None

    def close(self) -> None:
        """Stop sending notifications to the controller."""
        if self._task is not None:
            self._task.cancel()

    async def __call__(self, pending: Sequence[PendingProposal]) -> _Answers:
        """Respond to each proposal in the same way as a controller. Raises MetadataError."""
        answers: _Answers = {}
        for first in range(0, len(pending), _AT_ONCE):
            left = {
                proposal.topic_partition: (proposal, self._state(partition, proposal))
                for partition, proposal, *_ in pending[first : first + _AT_ONCE]
            }
            while left:
                settled = await self._write(left)
                answers.update(settled)
                left = {name: each for name, each in left.items() if name not in settled}
        return answers

    def _state(self, partition: Partition, proposal: IsrProposal) -> StateNode:
        """Return the state node's content. As in Kafka, it contains the epoch of the controller
        that elected the leader.
        """
        isr = tuple(member.broker_id for member in proposal.isr)
        return StateNode(
            self._view.broker_id, proposal.leader_epoch, isr, partition.controller_epoch
        )

    async def _write(self, wanted: dict[TopicPartition, _Wanted]) -> _Answers:
        """Write all state nodes in a single commit, or return errors for the proposals that
        conflict.
        """
        sets = [
            Set(layout.state_path(*name), layout.encode_state(state), each.partition_epoch)
            for name, (each, state) in wanted.items()
        ]
        try:
            await self._store.commit(sets)
        # If only one of many proposals conflicts, reject it and retry the rest.
        except (BadVersion, NoNode) as error:
            answers = await self._conflicts(wanted)
            if not answers:
                raise  # there is no conflict any longer, so the outcome is unknown
            _log.info("%d ISRs were changed by other brokers: %s", len(answers), error)
        else:
            answers = {
                name: _agreement(state, each.partition_epoch + 1)
                for name, (each, state) in wanted.items()
            }
        self._written(name for name, answer in answers.items() if answer.error_code == NONE)
        return answers

    async def _conflicts(self, wanted: dict[TopicPartition, _Wanted]) -> _Answers:
        """Return errors for the proposals whose state node does not have the expected version."""
        nodes = await self._store.read_many([layout.state_path(*name) for name in wanted])
        answers: _Answers = {}
        for (name, (each, state)), node in zip(wanted.items(), nodes, strict=True):
            if node is None:
                answers[name] = IsrAnswer(UnknownTopicOrPartition.code)
            elif node.version != each.partition_epoch:
                # An earlier attempt whose response was lost may already have written the node.
                is_done = _holds(node, name, state)
                answers[name] = (
                    _agreement(state, node.version)
                    if is_done
                    else IsrAnswer(InvalidUpdateVersion.code)
                )
        return answers

    # --- notifying the controller ----------------------------------------------------------------

    def _written(self, names: Iterable[TopicPartition]) -> None:
        """Notify the controller after a short delay, so that later changes can be included."""
        for name in names:
            self._changed[name] = None
            self._changed_at_ms = self._clock.monotonic_ms()
        if self._changed and self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._announce())

    async def _announce(self) -> None:
        pace, clock = self._pace, self._clock
        try:
            while self._changed:
                await asyncio.sleep(pace.check_every_ms / 1000)
                now_ms = clock.monotonic_ms()
                if (
                    now_ms <= self._changed_at_ms + pace.linger_ms
                    and now_ms <= self._notified_at_ms + pace.max_delay_ms
                ):
                    continue
                names, self._changed = self._changed, {}
                try:
                    await isr_notifications.announce(self._store, list(names))
                except MetadataError as error:
                    _log.warning("%d ISR change notifications are delayed: %s", len(names), error)
                    self._changed = {**names, **self._changed}
                else:
                    self._notified_at_ms = now_ms
        finally:
            self._task = None


def _agreement(state: StateNode, version: int) -> IsrAnswer:
    return IsrAnswer(NONE, state.leader, state.leader_epoch, state.isr, version)


def _holds(node: Znode, name: TopicPartition, state: StateNode) -> bool:
    try:
        return layout.decode_state(*name, node.data) == state
    except CorruptData:
        return False
