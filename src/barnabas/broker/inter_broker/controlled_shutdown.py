"""Runs a controlled shutdown, in which other brokers take over leadership before this broker
disconnects.

The controller moves this broker's leaderships to other members of the ISR and stops its followers,
so that clients have a leader at all times. If a leadership cannot be moved because this broker has
the last in-sync replica, the request is retried a few times. If no other live broker has a replica
of these partitions, this broker does not wait. This is also noticed during the backoff, for example
when two brokers stop at the same time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

from barnabas.cluster.store import SessionState
from barnabas.counted import counted
from barnabas.errors import BarnabasError, NotController, RequestTimedOut, error_for_code
from barnabas.protocol.api import CONTROLLED_SHUTDOWN
from barnabas.protocol.messages.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
)
from barnabas.shielded import shielded
from barnabas.types import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.cluster_view import ClusterView
    from barnabas.broker.configs.current_config import CurrentConfig
    from barnabas.broker.inter_broker.peer_links import PeerLinks
    from barnabas.clock import Clock
    from barnabas.cluster.store import MetadataStore

_log = logging.getLogger(__name__)

_VERSION = 3
_LOOK_MS = 50


class LocalController(Protocol):
    """The controller on this broker, if it is the active one."""

    @property
    def is_active(self) -> bool: ...

    @property
    def controller_id(self) -> int: ...

    async def controlled_shutdown(
        self, broker_id: int, broker_epoch: int
    ) -> Sequence[TopicPartition]: ...


class ControlledShutdown(NamedTuple):
    """Moves leaderships from this broker to other brokers. The fields are the parts of the broker
    that it uses.
    """

    view: ClusterView
    config: CurrentConfig
    clock: Clock
    store: MetadataStore
    controller: LocalController
    links: PeerLinks

    async def run(self) -> bool:
        """Move this broker's leaderships to other brokers. Return whether none of them is left.

        Retries up to `controlled.shutdown.max.retries` times, and waits
        `controlled.shutdown.retry.backoff.ms` before each retry. Does nothing if controlled
        shutdown is disabled or no other broker could take over.
        """
        config = self.config
        if self._is_alone:
            return True
        if not config.bool("controlled.shutdown.enable"):
            return False
        attempts = config.int("controlled.shutdown.max.retries")
        for attempt in range(1, attempts + 1):
            try:
                left = await self._ask_as_long_as_it_helps()
            except BarnabasError as error:
                _log.warning("controlled shutdown failed: %s", error)
                left = self._led_partitions()
            else:
                if not left:
                    _log.info("this broker no longer leads any partition")
                    return True
                _log.warning(
                    "this broker still leads %s that no other broker can take over, such as %s",
                    counted(len(left), "partition"),
                    left[0],
                )
            if attempt < attempts:
                await self._back_off(left, config.int("controlled.shutdown.retry.backoff.ms"))
            if self._is_alone:
                _log.info("no other broker is live to take over partitions")
                return True
            if not self._has_heirs(left):
                _log.info(
                    "no other live broker has a replica of the partitions that this broker leads"
                )
                return False
        _log.warning(
            "proceeding to do an unclean shutdown as all the controlled shutdown attempts "
            "failed (%s)",
            counted(attempts, "attempt"),
        )
        return False

    @property
    def _is_alone(self) -> bool:
        return not self.view.image.brokers.keys() - {self.view.broker_id}

    def _led_partitions(self) -> list[TopicPartition]:
        """Return the partitions led by this broker that have replicas on other brokers."""
        return [
            TopicPartition(topic.name, number)
            for topic in self.view.image.topics.values()
            for number, partition in topic.partitions.items()
            if partition.leader == self.view.broker_id and len(partition.replicas) > 1
        ]

    def _has_heirs(self, names: Sequence[TopicPartition]) -> bool:
        """Return whether another live broker could become the leader of any of these partitions.

        Also returns True if there are no partitions, because the controller must still stop this
        broker's followers.
        """
        others = self.view.image.brokers.keys() - {self.view.broker_id}
        return not names or any(not others.isdisjoint(self._replicas(name)) for name in names)

    def _replicas(self, name: TopicPartition) -> Sequence[int]:
        topic = self.view.image.topics.get(name.topic)
        partition = None if topic is None else topic.partitions.get(name.partition)
        return () if partition is None else partition.replicas

    async def _back_off(self, left: Sequence[TopicPartition], pause_ms: int) -> None:
        """Wait until the backoff is over, or until no broker is left that could take over."""
        ends_at_ms = self.clock.monotonic_ms() + pause_ms
        while not self._is_alone and self._has_heirs(left):
            left_ms = ends_at_ms - self.clock.monotonic_ms()
            if left_ms <= 0:
                return
            await asyncio.sleep(min(left_ms, _LOOK_MS) / 1000)

    async def _ask_as_long_as_it_helps(self) -> Sequence[TopicPartition]:
        """Call `_ask` with a time limit. Raises RequestTimedOut, or NotController if the store
        cannot be reached.
        """
        timeout_ms = self.config.int("controller.socket.timeout.ms")
        ends_at_ms = self.clock.monotonic_ms() + timeout_ms
        asking = asyncio.get_running_loop().create_task(self._ask())
        try:
            while not asking.done():
                # New leaders must be written to the store, so no controller can help while the
                # store cannot be reached.
                if self.store.session_state is not SessionState.CONNECTED:
                    raise NotController("the metadata store does not answer")
                if self._is_alone:
                    raise NotController("all other brokers have failed")
                if self.clock.monotonic_ms() >= ends_at_ms:
                    raise RequestTimedOut(f"no answer within {timeout_ms} ms")
                with suppress(TimeoutError):
                    await asyncio.wait_for(shielded(asking), _LOOK_MS / 1000)
            return asking.result()
        finally:
            asking.cancel()

    async def _ask(self) -> Sequence[TopicPartition]:
        """Ask the controller to move the leaderships, and return the partitions that remain. Raises
        BarnabasError if the controller rejects the request or does not respond.
        """
        view, controller = self.view, self.controller
        if controller.is_active:
            return await controller.controlled_shutdown(view.broker_id, view.broker_epoch)
        controller_id = controller.controller_id
        if controller_id in (-1, view.broker_id):
            raise NotController("no controller is available")
        request = ControlledShutdownRequest(
            broker_id=view.broker_id, broker_epoch=view.broker_epoch
        )
        timeout_ms = self.config.int("controller.socket.timeout.ms")
        answer = cast(
            ControlledShutdownResponse,
            await self.links.ask(controller_id, CONTROLLED_SHUTDOWN, request, timeout_ms, _VERSION),
        )
        if answer.error_code:
            raise error_for_code(answer.error_code)(f"controller {controller_id}")
        return [
            TopicPartition(each.topic_name, each.partition_index)
            for each in answer.remaining_partitions
        ]
