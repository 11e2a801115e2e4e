"""ISRs as leaders below inter.broker.protocol.version 2.7 change them: by their own hand (RE-9).

A leader writes the partition's state node, on the version in which it knows it. If somebody else
has written it the leader's change is lost, and what holds instead the controller tells. What was
written is announced to the controller a while later, many changes at once, as Kafka does it.
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
    from barnabas.broker.context import Node

_log = logging.getLogger(__name__)

_AT_ONCE = 500

_Wish = tuple[IsrProposal, StateNode]
_Answers = dict[TopicPartition, IsrAnswer]


class Pace(NamedTuple):
    """When the controller hears of changes: the values are Kafka's, which nobody can set."""

    check_every_ms: int = 2_500
    linger_ms: int = 5_000  # after the last change: another one may follow
    max_delay_ms: int = 60_000  # after the last announcement, if changes never cease


class IsrWrites:
    """This broker's."""

    __slots__ = ("_changed", "_changed_at_ms", "_node", "_pace", "_said_at_ms", "_task")

    def __init__(self, node: Node, pace: Pace | None = None) -> None:
        self._node = node
        self._pace = Pace() if pace is None else pace
        self._changed: dict[TopicPartition, None] = {}  # and not announced yet
        self._changed_at_ms = self._said_at_ms = node.clock.monotonic_ms()
        self._task: asyncio.Task[None] | None = None

    def close(self) -> None:
        """Nothing is announced any more."""
        if self._task is not None:
            self._task.cancel()

    async def write(self, proposals: Sequence[IsrProposal]) -> _Answers:
        """An answer for each, as a controller would give it. Raises MetadataError.

        Each must be of a partition that this broker leads.
        """
        answers: _Answers = {}
        for first in range(0, len(proposals), _AT_ONCE):
            some = proposals[first : first + _AT_ONCE]
            left = {each.topic_partition: (each, self._wished(each)) for each in some}
            while left:
                settled = await self._write(left)
                answers.update(settled)
                left = {name: wish for name, wish in left.items() if name not in settled}
        return answers

    def _wished(self, proposal: IsrProposal) -> StateNode:
        """With the epoch of the controller that made this broker leader, as Kafka writes it."""
        partition = self._node.replicas.leader_of(proposal.topic_partition).partition
        isr = tuple(member.broker_id for member in proposal.isr)
        return StateNode(
            self._node.broker_id, proposal.leader_epoch, isr, partition.controller_epoch
        )

    async def _write(self, wishes: dict[TopicPartition, _Wish]) -> _Answers:
        """All of them in one commit, or the answers to those that stand in its way."""
        sets = [
            Set(layout.state_path(*name), layout.encode_state(state), each.partition_epoch)
            for name, (each, state) in wishes.items()
        ]
        try:
            await self._node.store.commit(sets)
        except (BadVersion, NoNode) as error:
            answers = await self._those_in_the_way(wishes)
            if not answers:
                raise  # by now it is no more in the way: as if the store had not answered
            _log.info("%d ISRs are not as they were known here: %s", len(answers), error)
        else:
            answers = {
                name: _agreed(state, each.partition_epoch + 1)
                for name, (each, state) in wishes.items()
            }
        self._written(name for name, answer in answers.items() if answer.error_code == NONE)
        return answers

    async def _those_in_the_way(self, wishes: dict[TopicPartition, _Wish]) -> _Answers:
        nodes = await self._node.store.read_many([layout.state_path(*name) for name in wishes])
        answers: _Answers = {}
        for (name, (each, state)), node in zip(wishes.items(), nodes, strict=True):
            if node is None:
                answers[name] = IsrAnswer(UnknownTopicOrPartition.code)
            elif node.version != each.partition_epoch:
                # What was to be written may have been, by an earlier try without an answer.
                is_done = _says(node, name, state)
                answers[name] = (
                    _agreed(state, node.version)
                    if is_done
                    else IsrAnswer(InvalidUpdateVersion.code)
                )
        return answers

    # --- telling the controller ------------------------------------------------------------------

    def _written(self, names: Iterable[TopicPartition]) -> None:
        """To be announced soon, with what else changes until then."""
        for name in names:
            self._changed[name] = None
            self._changed_at_ms = self._node.clock.monotonic_ms()
        if self._changed and self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._announce())

    async def _announce(self) -> None:
        pace, clock = self._pace, self._node.clock
        try:
            while self._changed:
                await asyncio.sleep(pace.check_every_ms / 1000)
                now_ms = clock.monotonic_ms()
                if (
                    now_ms <= self._changed_at_ms + pace.linger_ms
                    and now_ms <= self._said_at_ms + pace.max_delay_ms
                ):
                    continue
                names, self._changed = self._changed, {}
                try:
                    await isr_notifications.announce(self._node.store, list(names))
                except MetadataError as error:
                    _log.warning("%d ISRs are announced later: %s", len(names), error)
                    self._changed = {**names, **self._changed}
                else:
                    self._said_at_ms = now_ms
        finally:
            self._task = None


def _agreed(state: StateNode, version: int) -> IsrAnswer:
    return IsrAnswer(NONE, state.leader, state.leader_epoch, state.isr, version)


def _says(node: Znode, name: TopicPartition, state: StateNode) -> bool:
    try:
        return layout.decode_state(*name, node.data) == state
    except CorruptData:
        return False
