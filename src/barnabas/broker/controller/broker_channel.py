"""The controller's channel to another broker. It sends one request at a time and retries until it
is answered.

While a broker is registered but unreachable, the channel keeps retrying and later requests are
queued (`request_backlog`). A channel serves only one registration. When the registration ends, the
queued requests are dropped, because the broker gets the full state when it registers again.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, cast

from barnabas.broker.controller.request_backlog import PendingRequest, RequestBacklog
from barnabas.broker.inter_broker import control_plane_wire as wire
from barnabas.broker.inter_broker import update_metadata_wire
from barnabas.cluster.controller_requests import ControlRequest, LeaderAndIsr, StopReplica
from barnabas.cluster.image import BrokerImage, ClusterImage
from barnabas.controller.broker_versions import lowest_version
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
    from barnabas.broker.controller.peer_connection import (
        Answered,
        Codes,
        Deposed,
        PeerConnection,
        Peers,
        VersionsKnown,
    )
    from barnabas.protocol.api import Api
    from barnabas.protocol.message import Message

_log = logging.getLogger(__name__)

_BACKOFF_S = 0.05
_MAX_BACKOFF_S = 1.0


class BrokerChannel:
    """Sends requests to one registration of one broker."""

    __slots__ = (
        "_answered",
        "_backlog",
        "_connection",
        "_deposed",
        "_due",
        "_peers",
        "_task",
        "_timeout_ms",
        "_versions_known",
        "broker",
    )

    def __init__(
        self,
        broker: BrokerImage,
        peers: Peers,
        timeout_ms: int,
        answered: Answered,
        deposed: Deposed,
        versions_known: VersionsKnown,
    ) -> None:
        """`deposed` is called with the error that ends this controller or this channel."""
        self.broker = broker
        self._peers = peers
        self._timeout_ms = timeout_ms
        self._answered = answered
        self._deposed = deposed
        self._versions_known = versions_known
        self._backlog = RequestBacklog()
        self._due = asyncio.Event()
        self._connection: PeerConnection | None = None
        self._task = asyncio.get_running_loop().create_task(self._run())
        self._task.add_done_callback(self._on_ended)

    def send(self, request: ControlRequest, image: ClusterImage) -> None:
        """Send the request after all earlier ones. `image` is the state of the cluster once the
        request has been applied.
        """
        self._backlog.add(request, image)
        self._due.set()

    def close(self) -> None:
        """Stop sending. A request that is already in flight may still reach the broker."""
        self._task.cancel()
        self._backlog.clear()
        if self._connection is not None:
            self._connection.close()

    def _on_ended(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if isinstance(error, Exception):
            _log.error("the channel to %s failed", self, exc_info=error)
            self._deposed(error)

    async def _run(self) -> None:
        while True:
            await self._due.wait()
            self._due.clear()
            while self._backlog:
                pending = self._backlog.first
                try:
                    codes = await self._answer_to(pending)
                except StaleControllerEpoch as error:
                    self._backlog.clear()
                    self._deposed(error)
                except StaleBrokerEpoch as error:
                    # The metadata store will report the new registration too, and this channel is
                    # then closed.
                    _log.info("%s has re-registered: %s", self, error)
                    self._backlog.clear()
                else:
                    self._backlog.remove_first()
                    self._answered(self.broker.broker_id, pending.request, codes)

    async def _answer_to(self, pending: PendingRequest) -> Codes:
        """Retry until the broker responds, and return the response. Raises any error that ends the
        channel.
        """
        backoff_s = _BACKOFF_S
        while True:
            try:
                codes = await self._ask(pending)
            # Both errors end this channel, because a retry would fail in the same way.
            except (StaleControllerEpoch, StaleBrokerEpoch):
                raise
            except KafkaError as error:
                if not (error.retriable or isinstance(error, ClusterAuthorizationFailed)):
                    # As in Kafka, do not retry, because the response would be the same. The
                    # controller logs separately that it excludes brokers without compatible
                    # versions.
                    level = (
                        logging.DEBUG if isinstance(error, UnsupportedVersion) else logging.ERROR
                    )
                    _log.log(level, "%s rejected %s: %s", self, _kind(pending), error)
                    return {}
                reason: BarnabasError = error
            except BarnabasError as error:
                reason = error
            else:
                if backoff_s >= _MAX_BACKOFF_S:
                    _log.warning("%s is responding again", self)
                return codes
            # Do not warn yet, because a broker is unreachable for a short time while it starts or
            # stops.
            if backoff_s < _MAX_BACKOFF_S:
                backoff_s = min(backoff_s * 2, _MAX_BACKOFF_S)
                level = logging.WARNING if backoff_s == _MAX_BACKOFF_S else logging.DEBUG
                _log.log(level, "%s: resending %s: %s", self, _kind(pending), reason)
            await asyncio.sleep(backoff_s)

    def __str__(self) -> str:
        return f"broker {self.broker.broker_id}"

    async def _ask(self, pending: PendingRequest) -> Codes:
        request, image = pending
        epoch = self.broker.epoch
        # Include the leaders' addresses, because the receiver may not know them yet.
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

    async def _exchange(self, api: Api, message: Message, highest: int) -> Message:
        """Send the request once, in the highest version that the peer supports, up to `highest`.

        Raises Unreachable or CorruptData, or UnsupportedVersion if the peer is too old.
        """
        if self._connection is None or not self._connection.is_open:
            if self._connection is not None:
                self._connection.close()
                self._connection = None
            self._connection = await self._peers.connect(
                self.broker, "controller", self._timeout_ms
            )
            self._versions_known(self.broker, self._connection.versions)
        version = self._connection.version(api, highest)
        if version < lowest_version(api):
            raise UnsupportedVersion(f"{self} supports {api.name} only up to version {version}")
        return await self._connection.send(api, message, version)


def _kind(pending: PendingRequest) -> str:
    return type(pending.request).__name__
