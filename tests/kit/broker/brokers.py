"""Several brokers on one metadata store, as far as a controller sees them.

Each has a session, a real `ControllerRunner` and a real socket, on which it takes the controller's
word by the real messages. What it hosts and knows is all that it has; what it answers can be set.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from barnabas.broker.cluster_view import ClusterView
from barnabas.broker.configs.current_config import CurrentConfig
from barnabas.broker.controller.controller_settings import ControllerSettings
from barnabas.broker.controller.registration import ensure_base
from barnabas.broker.controller.runner import ControllerRunner
from barnabas.broker.inter_broker import control_plane_wire, update_metadata_wire
from barnabas.broker.inter_broker.peers import Peers
from barnabas.clock import SystemClock, SystemRandom
from barnabas.cluster.controller_requests import (
    ControlRequest,
    LeaderAndIsr,
    StopReplica,
    UpdateMetadata,
)
from barnabas.cluster.embedded import EmbeddedStore
from barnabas.cluster.embedded_session import EmbeddedSession
from barnabas.cluster.image import BrokerImage, ClusterImage, Endpoint, PartitionImage
from barnabas.cluster.store import Create, MetadataStore
from barnabas.config import BrokerConfig
from barnabas.controller.controller import LogEnd
from barnabas.controller.topics import NewTopic
from barnabas.errors import StaleBrokerEpoch, StaleControllerEpoch
from barnabas.protocol.api import API_VERSIONS, APIS, Api
from barnabas.protocol.codec import Message
from barnabas.protocol.frame import decode_request_header, encode_response
from barnabas.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from barnabas.protocol.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from barnabas.protocol.messages.leader_and_isr import LeaderAndIsrRequest
from barnabas.protocol.messages.stop_replica import StopReplicaRequest
from barnabas.protocol.messages.update_metadata import (
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from barnabas.types import TopicPartition
from tests.kit.request import decode_request
from tests.kit.waiting import until
from tests.kit.whole_tree import load_topics

T0 = TopicPartition("t", 0)

_NO_CONFIG: dict[str, str] = {}


class SomeBroker:
    """One of them; `id` from 1."""

    def __init__(self, session: MetadataStore, broker_id: int, **settings: str) -> None:
        self.id = broker_id
        self.store = session
        self.view = ClusterView(broker_id, has_peers=True)
        self.hosted: dict[TopicPartition, PartitionImage] = {}
        self.received: list[ControlRequest] = []
        self.codes: dict[TopicPartition, int] = {}  # what it answers, where not 0
        self.ends: dict[TopicPartition, LogEnd] = {}
        self.epochs: list[int] = []  # of its registrations
        self.is_deaf = False  # takes requests, and answers none
        self.may_have_lost = False
        self.newest: dict[Api, int] = {}  # the last version that it knows, where not ours
        self.config = BrokerConfig(
            {
                "broker.id": str(broker_id),
                "log.dirs": "/nowhere",
                "zookeeper.session.timeout.ms": "2000",
                **settings,
            }
        )
        clock, random = SystemClock(), SystemRandom()
        self.runner = ControllerRunner(
            self.store,
            self.view,
            clock,
            random,
            ControllerSettings.of(self.config),
            self._deliver,
            peers=Peers(CurrentConfig(self.config), clock, random),
            registered=self.epochs.append,
        )
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self.port = 0

    # --- lifecycle -------------------------------------------------------------------------------

    @property
    def image(self) -> ClusterImage:
        return self.view.image

    async def start(self) -> None:
        await self.listen()
        cluster_id = await ensure_base(self.store, None, SystemRandom())
        self.view.update(self.image._replace(cluster_id=cluster_id))
        endpoint = Endpoint("PLAINTEXT", "127.0.0.1", self.port, "PLAINTEXT")
        await self.runner.start(
            BrokerImage(self.id, (endpoint,), None, 0, may_have_lost=self.may_have_lost)
        )

    async def _deliver(self, request: ControlRequest) -> dict[TopicPartition, int]:
        return self.carry_out(request)

    async def listen(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def hang_up(self) -> None:
        """No client can reach it any more."""
        assert self._server is not None
        self._server.close()
        for writer in list(self._writers):
            writer.transport.abort()
        await asyncio.sleep(0)

    async def die(self) -> None:
        """As the others see it: its session is over, and its connections are cut."""
        await self.hang_up()
        await self.runner.stop()
        await self.store.close()

    stop = die

    @property
    def session(self) -> EmbeddedSession:
        assert isinstance(self.store, EmbeddedSession)
        return self.store

    # --- what the controller says ----------------------------------------------------------------

    def roles_of(self, name: TopicPartition) -> list[tuple[int, tuple[int, ...]]]:
        """The leaders and ISRs that it was sent of a partition, one after the other."""
        return [
            (state.partition.leader, state.partition.isr)
            for request in self.received
            if isinstance(request, LeaderAndIsr)
            for state in request.partitions
            if state.topic_partition == name
        ]

    def carry_out(self, request: ControlRequest) -> dict[TopicPartition, int]:
        if request.controller_epoch < self.image.controller_epoch:
            raise StaleControllerEpoch
        self.received.append(request)
        if isinstance(request, UpdateMetadata):
            self.view.update(self.image.apply(request))
            return {}
        if isinstance(request, LeaderAndIsr):
            for state in request.partitions:
                if self.codes.get(state.topic_partition, 0) == 0:
                    self.hosted[state.topic_partition] = state.partition
            names = [state.topic_partition for state in request.partitions]
        else:
            names = list(request.partitions)
            for name in names:
                if self.codes.get(name, 0) == 0:
                    self.hosted.pop(name, None)
        return {name: self.codes.get(name, 0) for name in names}

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            while True:
                frame = await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
                header = decode_request_header(memoryview(frame))
                api = APIS[header.api_key]
                answer = self._answer(api, decode_request(header), header.api_version)
                if self.is_deaf and api is not API_VERSIONS:
                    continue
                parts = encode_response(api, header.api_version, header.correlation_id, answer)
                writer.write(b"".join(bytes(part) for part in parts))  # type: ignore[arg-type]
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self._writers.discard(writer)
            writer.close()

    def _answer(self, api: Api, request: Message, version: int) -> Message:
        if api is API_VERSIONS:
            return ApiVersionsResponse(
                api_keys=[
                    ApiVersion(
                        api_key=each.key,
                        min_version=each.min_version,
                        max_version=self.newest.get(each, each.max_version),
                    )
                    for each in APIS.values()
                ]
            )
        if isinstance(request, FetchRequest):
            return self._fetched(request)
        answer, code = self._control_answer(request, version)
        if code:
            answer.error_code = code  # type: ignore[attr-defined]
        return answer

    def _control_answer(self, request: Any, version: int) -> tuple[Message, int]:
        code = 0
        codes: dict[TopicPartition, int] = {}
        value: ControlRequest
        configs = _Configs()
        if isinstance(request, LeaderAndIsrRequest):
            value = control_plane_wire.leader_and_isr_value(request, version, configs)
        elif isinstance(request, StopReplicaRequest):
            (value,) = control_plane_wire.stop_replica_values(request, version)
        else:
            assert isinstance(request, UpdateMetadataRequest)
            value = update_metadata_wire.update_metadata_value(
                request, version, self.image, configs
            )
        try:
            if request.broker_epoch < self.epochs[-1]:
                raise StaleBrokerEpoch
            if not self.is_deaf:
                codes = self.carry_out(value)
        except (StaleBrokerEpoch, StaleControllerEpoch) as error:
            code = error.code
        if isinstance(value, LeaderAndIsr):
            known = dict.fromkeys((state.topic_partition for state in value.partitions), 0)
            return control_plane_wire.leader_and_isr_response(value, {**known, **codes}), code
        if isinstance(value, StopReplica):
            return control_plane_wire.stop_replica_response(codes), code
        return UpdateMetadataResponse(), code

    def _fetched(self, request: FetchRequest) -> FetchResponse:
        assert request.replica_id == -2
        return FetchResponse(
            responses=[
                FetchableTopicResponse(
                    topic=topic.topic,
                    partitions=[
                        self._end(TopicPartition(topic.topic, each.partition))
                        for each in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    def _end(self, name: TopicPartition) -> PartitionData:
        end = self.ends.get(name)
        data = PartitionData(partition_index=name.partition, records=None)
        if end is None:
            data.error_code = 3
        else:
            data.diverging_epoch = EpochEndOffset(epoch=end.epoch, end_offset=end.end_offset)
        return data


class _Configs(dict[str, dict[str, str]]):
    """No topic sets anything."""

    def __missing__(self, name: str) -> dict[str, str]:
        return _NO_CONFIG


class Brokers:
    """Those of one scenario; `self[1]` is the first controller."""

    def __init__(self, store: EmbeddedStore) -> None:
        self.store = store
        self.all: dict[int, SomeBroker] = {}

    def __getitem__(self, broker_id: int) -> SomeBroker:
        return self.all[broker_id]

    async def start(self, broker_id: int, **settings: str) -> SomeBroker:
        """One more, or one that was dead."""
        broker = self.all[broker_id] = SomeBroker(self.store.session(), broker_id, **settings)
        await broker.start()
        return broker

    async def state(self, topic: str, partition: int = 0) -> PartitionImage:
        """What the store holds."""
        loaded = await load_topics(self.store)
        return loaded[topic].partitions[partition]


def scenario(play: Callable[[Brokers], Awaitable[None]], brokers: int = 3, **settings: str) -> None:
    """Play it with so many brokers, who all know of each other."""

    async def whole() -> None:
        store = EmbeddedStore()
        them = Brokers(store)
        try:
            for broker_id in range(1, brokers + 1):
                await them.start(broker_id, **settings)
            await until(
                lambda: all(len(each.image.brokers) == brokers for each in them.all.values())
            )
            await play(them)
        finally:
            for broker in them.all.values():
                with suppress(AssertionError):
                    await broker.stop()
            await store.close()

    asyncio.run(whole())


async def empty_tree() -> EmbeddedStore:
    """A metadata store of a cluster without brokers and topics, which has had one controller."""
    store = EmbeddedStore()
    await ensure_base(store, None, SystemRandom())
    await store.commit([Create("/controller_epoch", b"1")])
    return store


def assigned(*replicas: int, name: str = "t", **configs: str) -> NewTopic:
    """A topic of one partition with these replicas."""
    texts = {key.replace("_", "."): text for key, text in configs.items()}
    return NewTopic(name, assignment={0: list(replicas)}, configs=texts)


async def made(them: Brokers, topic: NewTopic, by: int = 1) -> None:
    """Make it, and let everybody hear of it."""
    await them[by].runner.create_topic(topic)
    await until(lambda: all(topic.name in each.image.topics for each in alive(them)))


async def delete_topic(controller: ControllerRunner, name: str) -> None:
    """Delete one; raises what fails."""
    (error,) = await controller.delete_topics([name])
    if error is not None:
        raise error


def alive(them: Brokers) -> list[SomeBroker]:
    return [each for each in them.all.values() if each.session.session_state.value == "connected"]
