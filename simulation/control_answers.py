"""A simulated broker's answers to other brokers and to their controller, in the types of the
protocol.

A request contains only what the protocol carries, so topics' configs come from the metadata store,
and broker epochs are not received at all.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING

from barnabas.broker.handlers.alter_partition import alter
from barnabas.broker.inter_broker import control_plane_wire, update_metadata_wire
from barnabas.errors import KafkaError, StaleBrokerEpoch
from barnabas.protocol.message import Message
from barnabas.protocol.messages.alter_partition import AlterPartitionRequest
from barnabas.protocol.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from barnabas.protocol.messages.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse
from barnabas.protocol.messages.stop_replica import StopReplicaRequest, StopReplicaResponse
from barnabas.protocol.messages.update_metadata import (
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from barnabas.types import TopicPartition
from simulation.network import Reply
from simulation.topic_configs import TopicConfigs
from simulation.wire import ApiRequest

if TYPE_CHECKING:
    from simulation.sim_broker import SimBroker

_ANY_EPOCH = -1

_Ordered = LeaderAndIsrRequest | StopReplicaRequest | UpdateMetadataRequest


class ControlAnswers:
    """Answers inter-broker requests for one broker."""

    __slots__ = ("_broker",)

    def __init__(self, broker: SimBroker) -> None:
        self._broker = broker

    def answer(self, request: ApiRequest, reply: Reply) -> None:
        """Carry out a request, and reply with the response of the protocol."""
        message, version = request.message, request.version
        if isinstance(message, FetchRequest):
            reply(self._log_ends(message))
        elif isinstance(message, AlterPartitionRequest):
            controller = self._broker.controller
            self._broker.loop.start(_reply(partial(alter, controller, message, version), reply))
        else:
            assert isinstance(message, _Ordered), message
            self._broker.loop.start(_reply(partial(self._carry_out, message, version), reply))

    async def _carry_out(self, message: _Ordered, version: int) -> Message:
        try:
            if _ANY_EPOCH < message.broker_epoch < self._broker.epoch:
                raise StaleBrokerEpoch("it was meant for an earlier registration")
            if isinstance(message, UpdateMetadataRequest):
                return await self._update(message, version)
            if isinstance(message, StopReplicaRequest):
                return await self._stop(message, version)
            return await self._lead_or_follow(message, version)
        except KafkaError as error:
            code = error.code
        if isinstance(message, UpdateMetadataRequest):
            return UpdateMetadataResponse(error_code=code)
        if isinstance(message, StopReplicaRequest):
            return StopReplicaResponse(error_code=code)
        return LeaderAndIsrResponse(error_code=code)

    def _configs(self) -> TopicConfigs:
        return TopicConfigs(self._broker.cluster.ensemble)

    async def _lead_or_follow(
        self, message: LeaderAndIsrRequest, version: int
    ) -> LeaderAndIsrResponse:
        value = control_plane_wire.leader_and_isr_value(message, version, self._configs())
        codes = await self._broker.carry_out(value)
        return control_plane_wire.leader_and_isr_response(value, codes)

    async def _update(self, message: UpdateMetadataRequest, version: int) -> UpdateMetadataResponse:
        image = self._broker.image
        value = update_metadata_wire.update_metadata_value(message, version, image, self._configs())
        await self._broker.carry_out(value)
        return UpdateMetadataResponse()

    async def _stop(self, message: StopReplicaRequest, version: int) -> StopReplicaResponse:
        codes: dict[TopicPartition, int] = {}
        for value in control_plane_wire.stop_replica_values(message, version):
            codes.update(await self._broker.carry_out(value))
        return control_plane_wire.stop_replica_response(codes)

    def _log_ends(self, message: FetchRequest) -> FetchResponse:
        """Return the answer to a debugging consumer, for an offset beyond the end of all logs."""
        return FetchResponse(
            responses=[
                FetchableTopicResponse(
                    topic=topic.topic,
                    partitions=[
                        self._log_end(
                            TopicPartition(topic.topic, each.partition), each.current_leader_epoch
                        )
                        for each in topic.partitions
                    ],
                )
                for topic in message.topics
            ]
        )

    def _log_end(self, name: TopicPartition, leader_epoch: int) -> PartitionData:
        data = PartitionData(partition_index=name.partition, records=None)
        try:
            end = self._broker.serving.log_end(name, leader_epoch)
        except KafkaError as error:
            data.error_code = error.code
        else:
            data.diverging_epoch = EpochEndOffset(epoch=end.epoch, end_offset=end.end_offset)
        return data


async def _reply(work: Callable[[], Awaitable[Message]], reply: Reply) -> None:
    reply(await work())
