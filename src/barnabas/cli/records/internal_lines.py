"""Formats records of the internal topics like Kafka 3.9's formatters (GC-4). Pure.

    OffsetsMessageFormatter         [group,topic,0]::OffsetAndMetadata(offset=100, ...)
    GroupMetadataMessageFormatter   group::GroupMetadata(groupId=group, generation=1, ...)
    TransactionLogMessageFormatter  copy::TransactionMetadata(transactionalId=copy, ...)

The first two are for `__consumer_offsets`, the last one for `__transaction_state`. Each formats its
own kind of record and skips the others. The value of a tombstone is NULL. There is one difference:
group members and transaction partitions are sorted, while Kafka prints them in hash-table order.
"""

from __future__ import annotations

from barnabas.coordinator.records import (
    GroupMetadataKey,
    GroupMetadataValue,
    InternalRecord,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
    TransactionKey,
    TransactionStatus,
    TransactionValue,
    UnknownRecordType,
    decode_group_record,
    decode_transaction_record,
)
from barnabas.errors import CorruptData

_NOT_GIVEN = -1
_STATES = {each.value: each.name for each in TransactionStatus}


def offset_line(key: bytes | None, value: bytes | None) -> str | None:
    """Return the line for a committed offset, or None for other kinds of records. Raises
    CorruptData."""
    decoded = _decode(key, value)
    if decoded is None or not isinstance(decoded.key, OffsetCommitKey):
        return None
    name = decoded.key
    shown = "NULL" if decoded.value is None else _offset(decoded.value)
    return f"[{name.group},{name.topic},{name.partition}]::{shown}"


def group_line(key: bytes | None, value: bytes | None) -> str | None:
    """Return the line for a group with its members, or None for other kinds of records. Raises
    CorruptData."""
    decoded = _decode(key, value)
    if decoded is None or not isinstance(decoded.key, GroupMetadataKey):
        return None
    shown = "NULL" if decoded.value is None else _group(decoded)
    return f"{decoded.key.group}::{shown}"


def transaction_line(key: bytes | None, value: bytes | None) -> str | None:
    """Return the line for a transaction, or None if there is no key. A tombstone's value is NULL.
    Raises CorruptData."""
    if key is None:
        return None
    try:
        decoded = decode_transaction_record(key, value)
    except UnknownRecordType as error:
        return f"unknown::version={error.version}"
    assert isinstance(decoded.key, TransactionKey)
    transactional_id = decoded.key.transactional_id
    if decoded.value is None:
        return f"{transactional_id}::NULL"
    assert isinstance(decoded.value, TransactionValue)
    return f"{transactional_id}::{_transaction(transactional_id, decoded.value)}"


def _decode(key: bytes | None, value: bytes | None) -> InternalRecord | None:
    """Return the decoded record, or None for a kind written only by newer versions of Kafka."""
    if key is None:
        raise CorruptData("the record has no key")
    try:
        return decode_group_record(key, value)
    except UnknownRecordType:
        return None


def _offset(value: object) -> str:
    assert isinstance(value, OffsetCommitValue)
    epoch = value.leader_epoch
    java_epoch = "Optional.empty" if epoch == _NOT_GIVEN else f"Optional[{epoch}]"
    expiry = value.expire_timestamp
    return (
        f"OffsetAndMetadata(offset={value.offset}, leaderEpoch={java_epoch}, "
        f"metadata={value.metadata}, commitTimestamp={value.commit_timestamp}, "
        f"expireTimestamp={'None' if expiry == _NOT_GIVEN else f'Some({expiry})'})"
    )


def _group(decoded: InternalRecord) -> str:
    value = decoded.value
    assert isinstance(value, GroupMetadataValue) and isinstance(decoded.key, GroupMetadataKey)
    members = ", ".join(
        f"{member.member_id} -> {_member(member, value.protocol, decoded.version)}"
        for member in value.members
    )
    return (
        f"GroupMetadata(groupId={decoded.key.group}, generation={value.generation}, "
        f"protocolType={_option(value.protocol_type or None)}, "
        f"currentState={'Stable' if value.members else 'Empty'}, members=HashMap({members}))"
    )


def _member(member: MemberMetadata, protocol: str | None, version: int) -> str:
    # The first version lacks a separate rebalance timeout.
    rebalance_ms = member.rebalance_timeout if version else member.session_timeout
    return (
        f"MemberMetadata(memberId={member.member_id}, "
        f"groupInstanceId={_option(member.group_instance_id)}, "
        f"clientId={member.client_id}, clientHost={member.client_host}, "
        f"sessionTimeoutMs={member.session_timeout}, rebalanceTimeoutMs={rebalance_ms}, "
        f"supportedProtocols=List({'null' if protocol is None else protocol}))"
    )


def _transaction(transactional_id: str, value: TransactionValue) -> str:
    partitions = sorted(
        (topic.topic, partition)
        for topic in value.transaction_partitions or ()
        for partition in topic.partition_ids
    )
    listed = ", ".join(f"{topic}-{partition}" for topic, partition in partitions)
    status = value.transaction_status
    return (
        f"TransactionMetadata(transactionalId={transactional_id}, "
        f"producerId={value.producer_id}, producerEpoch={value.producer_epoch}, "
        f"txnTimeoutMs={value.transaction_timeout_ms}, state={_STATES.get(status, status)}, "
        f"pendingState=None, topicPartitions=HashSet({listed}), "
        f"txnStartTimestamp={value.start_timestamp_ms}, "
        f"txnLastUpdateTimestamp={value.last_update_timestamp_ms})"
    )


def _option(text: str | None) -> str:
    return "None" if text is None else f"Some({text})"
