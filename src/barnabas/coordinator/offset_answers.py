"""Builds offset responses in which every partition has the same result, usually an error.

In all of these APIs, the request contains topics and partitions, and the response repeats them.
"""

from __future__ import annotations

from collections.abc import Container

from barnabas.errors import NONE, KafkaError
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitPartitionResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitTopicResponse,
)
from barnabas.protocol.messages.offset_delete import (
    OffsetDeletePartitionResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteTopicResponse,
)
from barnabas.protocol.messages.offset_fetch import (
    OffsetFetchGroup,
    OffsetFetchGroupResponse,
    OffsetFetchPartitionResponse,
    OffsetFetchTopicResponse,
)
from barnabas.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitPartitionResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitTopicResponse,
)

NO_OFFSET = -1
"""The offset in the response for a partition that has an error or no committed offset."""

Error = type[KafkaError] | KafkaError


def commit_answer(request: OffsetCommitRequest, error: Error | None = None) -> OffsetCommitResponse:
    """Return a response with this error for all partitions. If it is None, all succeeded."""
    code = NONE if error is None else error.code
    return OffsetCommitResponse(
        topics=[
            OffsetCommitTopicResponse(
                name=topic.name,
                partitions=[
                    OffsetCommitPartitionResponse(
                        partition_index=partition.partition_index, error_code=code
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def transactional_answer(
    request: TxnOffsetCommitRequest, error: Error | None = None
) -> TxnOffsetCommitResponse:
    """Return a response with this error for all partitions. If it is None, all succeeded."""
    code = NONE if error is None else error.code
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitTopicResponse(
                name=topic.name,
                partitions=[
                    TxnOffsetCommitPartitionResponse(
                        partition_index=partition.partition_index, error_code=code
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def delete_answer(
    request: OffsetDeleteRequest, kept: Container[str], error: Error
) -> OffsetDeleteResponse:
    """Return a response with the error for the topics in `kept`, whose offsets were not deleted,
    and with success for all other topics."""
    topics = []
    for topic in request.topics:
        code = error.code if topic.name in kept else NONE
        partitions = [
            OffsetDeletePartitionResponse(
                partition_index=partition.partition_index, error_code=code
            )
            for partition in topic.partitions
        ]
        topics.append(OffsetDeleteTopicResponse(name=topic.name, partitions=partitions))
    return OffsetDeleteResponse(topics=topics)


def fetch_answer(group: OffsetFetchGroup, error: Error | None = None) -> OffsetFetchGroupResponse:
    """Return a response without offsets, because there is an error or no offset is committed.

    The error is set both on the group and on each partition. The version of the response determines
    which of the two is sent.
    """
    code = NONE if error is None else error.code
    return OffsetFetchGroupResponse(
        group_id=group.group_id,
        error_code=code,
        topics=[
            OffsetFetchTopicResponse(
                name=topic.name,
                partitions=[no_offset(partition, code) for partition in topic.partition_indexes],
            )
            for topic in group.topics or ()
        ],
    )


def no_offset(partition: int, code: int = NONE) -> OffsetFetchPartitionResponse:
    """Return the response for a partition that has no offset or an error."""
    return OffsetFetchPartitionResponse(
        partition_index=partition, committed_offset=NO_OFFSET, metadata="", error_code=code
    )
