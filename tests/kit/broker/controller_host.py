"""The controller over an embedded store, and a broker's side of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from barnabas.broker.cluster_view import ClusterView
from barnabas.broker.controller.broker_channels import Deliver
from barnabas.broker.controller.controller_settings import ControllerSettings
from barnabas.broker.controller.runner import ControllerRunner
from barnabas.clock import SystemClock, SystemRandom
from barnabas.cluster.controller_requests import (
    ControlRequest,
    LeaderAndIsr,
    UpdateMetadata,
)
from barnabas.cluster.embedded import EmbeddedStore
from barnabas.cluster.image import BrokerImage, ClusterImage, Endpoint
from barnabas.cluster.loading import LatestEpochOf, no_log
from barnabas.errors import (
    NONE,
    KafkaStorageError,
)
from barnabas.types import TopicPartition

BROKER = BrokerImage(0, (Endpoint("PLAINTEXT", "h", 9092, "PLAINTEXT"),), None, 0)


def runner_of(
    store: EmbeddedStore,
    view: ClusterView,
    deliver: Deliver,
    latest_epoch_of: LatestEpochOf = no_log,
) -> ControllerRunner:
    """Of a broker that is alone."""
    clock, random, settings = SystemClock(), SystemRandom(), ControllerSettings()
    return ControllerRunner(store, view, clock, random, settings, deliver, latest_epoch_of)


class Host:
    """A broker's side of it: what it hosts and knows, and the requests it received, in order."""

    def __init__(self, store: EmbeddedStore) -> None:
        self.store = store
        self.view = ClusterView(0)
        self.hosted: dict[TopicPartition, int] = {}  # leader epochs
        self.received: list[ControlRequest] = []
        self.lost: set[TopicPartition] = set()  # with a directory, as its answers say
        self.runner = runner_of(store, self.view, self._deliver)

    @property
    def image(self) -> ClusterImage:
        return self.view.image

    async def _deliver(self, request: ControlRequest) -> dict[TopicPartition, int] | None:
        self.received.append(request)
        if isinstance(request, UpdateMetadata):
            self.view.update(self.image.apply(request))
            return None
        if isinstance(request, LeaderAndIsr):
            for state in request.partitions:
                self.hosted[state.topic_partition] = state.partition.leader_epoch
            names = [state.topic_partition for state in request.partitions]
        else:
            names = list(request.partitions)
            for name in names:
                self.hosted.pop(name, None)
        return {name: KafkaStorageError.code if name in self.lost else NONE for name in names}

    def paths(self) -> set[str]:
        return set(self.store.tree.nodes)


def run(
    scenario: Callable[[Host], Awaitable[None]], store: Callable[[], EmbeddedStore] = EmbeddedStore
) -> None:
    async def whole() -> None:
        host = Host(store())
        await host.runner.start(BROKER)
        try:
            await scenario(host)
        finally:
            await host.runner.stop()
            await host.store.close()

    asyncio.run(whole())
