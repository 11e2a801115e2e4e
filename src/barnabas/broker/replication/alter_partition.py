"""Sends the controller the ISR changes that leaders on this broker propose (KIP-497).

If inter.broker.protocol.version is below 2.7, the leader does not ask the controller but writes the
ISR itself (`zk_alter_partition`).

All proposals made in the same turn of the event loop are sent in one request. Only one request is
in flight at a time, and proposals made in the meantime are sent in the next request. If the
controller cannot be reached or has resigned, a proposal is sent again until it is answered or the
partition's leader or leader epoch changes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, cast

from barnabas.broker.inter_broker import alter_partition_wire as wire
from barnabas.broker.state_changes import is_shrink, shrink_lines
from barnabas.broker.state_events import IsrUpdate, report_isrs
from barnabas.errors import NONE, BarnabasError, NotController
from barnabas.protocol.api import ALTER_PARTITION
from barnabas.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.cluster_view import ClusterView
    from barnabas.broker.configs.current_config import CurrentConfig
    from barnabas.broker.inter_broker.peer_links import PeerLinks
    from barnabas.broker.partitions.alter_partition_queue import (
        AlterPartitionQueue,
        PendingProposal,
    )
    from barnabas.cluster.controller_requests import IsrAnswer, IsrProposal
    from barnabas.events import EventLog
    from barnabas.types import TopicPartition

_log = logging.getLogger(__name__)

_BACKOFF_S = 0.05
_MAX_BACKOFF_S = 1.0

Answers = Mapping["TopicPartition", "IsrAnswer"]


class IsrApproval(Protocol):
    """Approves ISR changes.

    Raises BarnabasError if the whole request is rejected or not answered.
    """

    async def __call__(self, pending: Sequence[PendingProposal]) -> Answers: ...

    def close(self) -> None: ...


class LocalController(Protocol):
    """The controller on this broker, as long as it is the active one."""

    @property
    def is_active(self) -> bool: ...

    @property
    def controller_id(self) -> int: ...

    async def alter_partitions(
        self, broker_id: int, broker_epoch: int, proposals: Sequence[IsrProposal]
    ) -> Answers: ...


class ControllerApproval:
    """Asks the controller, which may be on this broker or another."""

    __slots__ = ("_config", "_controller", "_links", "_view")

    def __init__(
        self,
        view: ClusterView,
        config: CurrentConfig,
        controller: LocalController,
        links: PeerLinks,
    ) -> None:
        self._view = view
        self._config = config
        self._controller = controller
        self._links = links

    async def __call__(self, pending: Sequence[PendingProposal]) -> Answers:
        view, controller = self._view, self._controller
        proposals = [each.proposal for each in pending]
        # If the controller is on this broker, ask it directly without a connection.
        if controller.is_active:
            return await controller.alter_partitions(view.broker_id, view.broker_epoch, proposals)
        controller_id = controller.controller_id
        if controller_id in (-1, view.broker_id):
            raise NotController("no controller is available")

        def message(version: int) -> AlterPartitionRequest:
            return wire.isr_request(proposals, view.broker_id, view.broker_epoch, version)

        timeout_ms = self._config.int("controller.socket.timeout.ms")
        answer = await self._links.ask(
            controller_id, ALTER_PARTITION, message, timeout_ms, wire.HIGHEST_VERSION
        )
        return wire.isr_answers(proposals, cast(AlterPartitionResponse, answer))

    def close(self) -> None:
        """Do nothing, because the links are closed by their owner."""


class AlterPartition:
    """Sends proposals to the controller between calls of `start` and `close`."""

    __slots__ = ("_approval", "_events", "_logged", "_queue", "_task")

    def __init__(self, queue: AlterPartitionQueue, approval: IsrApproval, events: EventLog) -> None:
        self._queue = queue
        self._approval = approval
        self._events = events
        # logged shrinks that are not answered yet
        self._logged: dict[TopicPartition, IsrProposal] = {}
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    def close(self) -> None:
        """Stop asking controllers."""
        self._queue.clear()
        if self._task is not None:
            self._task.cancel()
        self._approval.close()

    async def _run(self) -> None:
        backoff_s = _BACKOFF_S
        while True:
            pending = await self._queue.take()
            if not pending:
                continue
            self._log_shrinks(pending)
            if await self._settle(pending):
                self._logged.clear()
                backoff_s = _BACKOFF_S
            else:
                await asyncio.sleep(backoff_s)
                backoff_s = min(backoff_s * 2, _MAX_BACKOFF_S)

    async def _settle(self, pending: Sequence[PendingProposal]) -> bool:
        """Send one request and put unanswered proposals back into the queue. Return whether all
        proposals were accepted."""
        try:
            answers = await self._approval(pending)
        except BarnabasError as error:
            _log.info("%d ISR changes are delayed: %s", len(pending), error)
        except Exception:
            # This is either a bug in Barnabas or an address that cannot be resolved. Retry, because
            # without a response the ISRs of these partitions could never change again.
            _log.exception("%d ISR changes are delayed", len(pending))
        else:
            return await self._hand_out(pending, answers)
        for each in pending:
            self._queue.put_back(each)
        return False

    async def _hand_out(self, pending: Sequence[PendingProposal], answers: Answers) -> bool:
        """Pass each response to its proposal. Return whether all proposals were accepted."""
        updates = []
        for each in pending:
            answer = answers[each.proposal.topic_partition]
            # Do not log partitions that are now led by another broker.
            if answer.error_code == NONE and each.is_led:
                updates.append(IsrUpdate(each.partition, answer, each.lags))
            if not each.answer.done():
                each.answer.set_result(answer)
        await asyncio.sleep(0)  # the leaders process the responses before these are logged
        report_isrs(self._events, _log, updates)
        return all(answers[each.proposal.topic_partition].error_code == NONE for each in pending)

    def _log_shrinks(self, pending: Sequence[PendingProposal]) -> None:
        """Log each shrink only once, even if the request is sent again."""
        shrinks = []
        for partition, proposal, *_ in pending:
            if self._logged.get(proposal.topic_partition) != proposal:
                self._logged[proposal.topic_partition] = proposal
                if is_shrink(partition, proposal):
                    shrinks.append((partition, proposal))
        for line in shrink_lines(shrinks):
            _log.info("%s", line)
