"""A simulated broker's answers to the controller on another broker, in the types of the protocol.

A request brings a broker only what the protocol carries: topics' configs come from the metadata
store, and epochs of brokers do not arrive at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.inter_broker import control_plane_wire, update_metadata_wire
from barnabas.errors import NONE, StaleBrokerEpoch
from barnabas.protocol.message import Message
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
from simulation.topic_configs import TopicConfigs
from simulation.wire import ApiRequest

if TYPE_CHECKING:
    from simulation.sim_broker import SimBroker

_ANY_EPOCH = -1

_Ordered = LeaderAndIsrRequest | StopReplicaRequest | UpdateMetadataRequest


class ControlPlane:
    """Answers the controller's requests for one broker."""

    __slots__ = ("_broker",)

    def __init__(self, broker: SimBroker) -> None:
        self._broker = broker

    def answer(self, request: ApiRequest) -> Message:
        """Carry a request out, and return the response of the protocol."""
        message, version = request.message, request.version
        if isinstance(message, FetchRequest):
            return self._log_ends(message)
        assert isinstance(message, _Ordered), message
        epoch = message.broker_epoch
        code = StaleBrokerEpoch.code if _ANY_EPOCH < epoch < self._broker.epoch else NONE
        if isinstance(message, UpdateMetadataRequest):
            return UpdateMetadataResponse(error_code=code or self._update(message, version))
        if code:
            is_stop = isinstance(message, StopReplicaRequest)
            return (StopReplicaResponse if is_stop else LeaderAndIsrResponse)(error_code=code)
        if isinstance(message, StopReplicaRequest):
            return self._stop(message, version)
        value = control_plane_wire.leader_and_isr_value(message, version, self._configs())
        answer = self._broker.carry_out(value)
        if answer.error_code:
            return LeaderAndIsrResponse(error_code=answer.error_code)
        return control_plane_wire.leader_and_isr_response(value, answer.codes)

    def _configs(self) -> TopicConfigs:
        return TopicConfigs(self._broker.cluster.ensemble)

    def _update(self, message: UpdateMetadataRequest, version: int) -> int:
        image = self._broker.image
        value = update_metadata_wire.update_metadata_value(message, version, image, self._configs())
        return self._broker.carry_out(value).error_code

    def _stop(self, message: StopReplicaRequest, version: int) -> StopReplicaResponse:
        codes: dict[TopicPartition, int] = {}
        for value in control_plane_wire.stop_replica_values(message, version):
            answer = self._broker.carry_out(value)
            if answer.error_code:
                return StopReplicaResponse(error_code=answer.error_code)
            codes.update(answer.codes)
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
        data.error_code, end = self._broker.log_end(name, leader_epoch)
        if end is not None:
            data.diverging_epoch = EpochEndOffset(epoch=end.epoch, end_offset=end.end_offset)
        return data
