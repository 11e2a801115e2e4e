"""How the controller speaks to another broker: one request after the other, until each is answered.

A broker that cannot be reached is tried again for as long as it is registered; what was decided in
the meantime waits (`control_backlog`). A channel is for one registration: when that is gone, so is
all that was to be told, since the next one is told everything anew.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from barnabas.broker.controller.request_backlog import Backlog, Wanted
from barnabas.broker.inter_broker import control_plane_wire as wire
from barnabas.broker.inter_broker import update_metadata_wire
from barnabas.cluster.controller_requests import ControlRequest, LeaderAndIsr, StopReplica
from barnabas.cluster.image import BrokerImage, ClusterImage
from barnabas.errors import (
    BarnabasError,
    ClusterAuthorizationFailed,
    KafkaError,
    StaleBrokerEpoch,
    StaleControllerEpoch,
    UnsupportedVersion,
)
from barnabas.protocol.api import LEADER_AND_ISR, STOP_REPLICA, UPDATE_METADATA
from barnabas.protocol.messages.leader_and_isr import LeaderAndIsrResponse
from barnabas.protocol.messages.stop_replica import StopReplicaResponse
from barnabas.protocol.messages.update_metadata import UpdateMetadataResponse

if TYPE_CHECKING:
    from barnabas.broker.controller.broker_channels import Answered, Codes
    from barnabas.broker.inter_broker.peers import Peers
    from barnabas.client.channel import Channel
    from barnabas.protocol.api import Api
    from barnabas.protocol.message import Message

_log = logging.getLogger(__name__)

_BACKOFF_S = 0.05
_MAX_BACKOFF_S = 1.0


class ControlChannel:
    """To one registration of one broker."""

    __slots__ = (
        "_backlog",
        "_channel",
        "_deposed",
        "_due",
        "_peers",
        "_task",
        "_tell",
        "_timeout_ms",
        "broker",
    )

    def __init__(
        self,
        broker: BrokerImage,
        peers: Peers,
        timeout_ms: int,
        tell: Answered,
        deposed: Callable[[Exception], None],
    ) -> None:
        """`tell` gets the answers, `deposed` what makes it senseless to go on as controller: a
        broker knows of a later epoch, or the channel itself fails."""
        self.broker = broker
        self._peers = peers
        self._timeout_ms = timeout_ms
        self._tell = tell
        self._deposed = deposed
        self._backlog = Backlog()
        self._due = asyncio.Event()
        self._channel: Channel | None = None
        self._task = asyncio.get_running_loop().create_task(self._run())
        self._task.add_done_callback(self._ended)

    def send(self, request: ControlRequest, image: ClusterImage) -> None:
        """Have it told after all that was to be told before; `image`: as it is with it."""
        self._backlog.add(request, image)
        self._due.set()

    def close(self) -> None:
        """Nothing is told any more. What is under way may still arrive."""
        self._task.cancel()
        self._backlog.clear()
        if self._channel is not None:
            self._channel.close()

    def _ended(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if isinstance(error, Exception):
            _log.error("nothing more can be said to %s", self, exc_info=error)
            self._deposed(error)

    async def _run(self) -> None:
        while True:
            await self._due.wait()
            self._due.clear()
            while self._backlog:
                wanted = self._backlog.first
                try:
                    codes = await self._told(wanted)
                except StaleControllerEpoch as error:
                    self._backlog.clear()
                    self._deposed(error)
                except StaleBrokerEpoch as error:
                    # The store says so, too, in a moment, and then this channel is closed.
                    _log.info("broker %d has registered anew: %s", self.broker.broker_id, error)
                    self._backlog.clear()
                else:
                    self._backlog.told()
                    self._tell(self.broker.broker_id, wanted.request, codes)

    async def _told(self, wanted: Wanted) -> Codes:
        """The answer, however long it takes. Raises what ends the channel's work."""
        backoff_s = _BACKOFF_S
        while True:
            try:
                codes = await self._ask(wanted)
            except (StaleControllerEpoch, StaleBrokerEpoch):
                raise
            except KafkaError as error:
                if not (error.retriable or isinstance(error, ClusterAuthorizationFailed)):
                    # As Kafka does: to say it once more would give the same.
                    _log.error("%s refuses %s: %s", self, _kind(wanted), error)
                    return {}
                reason: BarnabasError = error
            except BarnabasError as error:
                reason = error
            else:
                if backoff_s >= _MAX_BACKOFF_S:
                    _log.warning("%s answers again", self)
                return codes
            # Who starts or stops cannot be reached for a moment, which is nobody's trouble.
            if backoff_s < _MAX_BACKOFF_S:
                backoff_s = min(backoff_s * 2, _MAX_BACKOFF_S)
                is_trouble = backoff_s == _MAX_BACKOFF_S
                level = logging.WARNING if is_trouble else logging.DEBUG
                _log.log(level, "%s: %s waits: %s", self, _kind(wanted), reason)
            await asyncio.sleep(backoff_s)

    def __str__(self) -> str:
        return f"broker {self.broker.broker_id}"

    async def _ask(self, wanted: Wanted) -> Codes:
        request, image = wanted
        epoch = self.broker.epoch
        if isinstance(request, LeaderAndIsr):
            message, version = wire.leader_and_isr_request(request, epoch, image.brokers)
            answer = await self._exchange(LEADER_AND_ISR, message, version)
            return wire.leader_and_isr_codes(request, cast(LeaderAndIsrResponse, answer))
        if isinstance(request, StopReplica):
            stop, version = wire.stop_replica_request(request, epoch)
            answer = await self._exchange(STOP_REPLICA, stop, version)
            return wire.stop_replica_codes(cast(StopReplicaResponse, answer))
        update, version = update_metadata_wire.update_metadata_request(request, epoch, image.topics)
        answer = await self._exchange(UPDATE_METADATA, update, version)
        wire.check(cast(UpdateMetadataResponse, answer).error_code)
        return {}

    async def _exchange(self, api: Api, message: Message, version: int) -> Message:
        """Raises Unreachable, CorruptData, and UnsupportedVersion if the peer lacks `version`."""
        if self._channel is None or not self._channel.is_open:
            if self._channel is not None:
                self._channel.close()
                self._channel = None
            self._channel = await self._peers.connect(self.broker, "controller", self._timeout_ms)
        if self._channel.version(api, version) != version:
            raise UnsupportedVersion(
                f"{self} speaks {api.name} only up to {self._channel.version(api)}"
            )
        return await self._channel.send(api, message, version)


def _kind(wanted: Wanted) -> str:
    return type(wanted.request).__name__
