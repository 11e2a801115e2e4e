"""How a simulated controller's requests reach the brokers: its own at once, the others in order.

Each is asked again until it has answered, as long as its registration lasts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from barnabas.cluster.controller_requests import ControlRequest
from barnabas.controller.controller import Controller
from barnabas.types import TopicPartition
from simulation.wire import Control, ControlAnswer
from simulation.world import Promise

if TYPE_CHECKING:
    from simulation.sim_broker import SimBroker

_CALL_TIMEOUT_MS = 1000
_RETRY_MS = 70

Answered = Callable[[int, ControlRequest, Mapping[TopicPartition, int]], None]
"""Told of the broker, of what it was asked, and of an error code for each partition in it."""


class _Channel:
    """What is still to be said to one broker in one registration."""

    __slots__ = ("epoch", "queue", "wake")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.queue: deque[ControlRequest] = deque()
        self.wake: Promise[None] = Promise()


class Channels:
    """One broker's, for all of its tenures."""

    __slots__ = ("_answered", "_broker", "_channels", "controller")

    def __init__(self, broker: SimBroker, answered: Answered) -> None:
        self._broker = broker
        self._answered = answered
        self._channels: dict[int, _Channel] = {}
        self.controller: Controller | None = None  # on whose behalf it speaks

    def begin(self, controller: Controller) -> None:
        self.controller = controller
        self._channels = {}

    def end(self) -> None:
        """Nothing is told any more."""
        self.controller = None
        for channel in self._channels.values():
            channel.queue.clear()
        self._channels = {}

    def send(self, broker_id: int, request: ControlRequest) -> None:
        broker, controller = self._broker, self.controller
        assert controller is not None
        if broker_id == broker.broker_id:
            self._answered(broker_id, request, broker.carry_out(request).codes)
            return
        registered = controller.image.brokers.get(broker_id)
        if registered is None:
            return
        channel = self._channels.get(broker_id)
        if channel is None or channel.epoch != registered.epoch:
            if channel is not None:
                channel.queue.clear()
                channel.wake.resolve(None)
            channel = self._channels[broker_id] = _Channel(registered.epoch)
            broker.cluster.world.start(broker.life, self._deliver(broker_id, channel))
        channel.queue.append(request)
        channel.wake.resolve(None)

    async def _deliver(self, broker_id: int, channel: _Channel) -> None:
        broker = self._broker
        connection = broker.cluster.network.connect(
            broker.broker_id,
            broker.life,
            broker_id,
            may_be_late=broker.cluster.machines.has_late_control,
        )
        while True:
            if not channel.queue:
                if self._channels.get(broker_id) is not channel:
                    return
                channel.wake = Promise()
                await channel.wake
                continue
            request = Control(channel.epoch, channel.queue[0])
            answer: ControlAnswer | None = await connection.call(request, _CALL_TIMEOUT_MS)
            controller = self.controller
            live = {} if controller is None else controller.image.brokers
            if broker_id not in live or live[broker_id].epoch != channel.epoch:
                channel.queue.clear()
            elif answer is None:
                await broker.cluster.world.sleep(broker.life, _RETRY_MS)
            elif channel.queue and channel.queue[0] is request.request:
                channel.queue.popleft()
                if not answer.error_code:
                    self._answered(broker_id, request.request, answer.codes)
