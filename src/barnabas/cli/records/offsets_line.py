"""Records of `__consumer_offsets` as the lines of Kafka 3.9's two formatters (GC-4). Pure.

    OffsetsMessageFormatter         [group,topic,0]::OffsetAndMetadata(offset=100, ...)
    GroupMetadataMessageFormatter   group::GroupMetadata(groupId=group, generation=1, ...)

Each formats its kind of record and skips the other; a tombstone's value is NULL. One difference:
the members of a group are in their record's order here, in a hash table's order in Kafka.
"""

from __future__ import annotations

from barnabas.coordinator.records import (
    GroupMetadataKey,
    GroupMetadataValue,
    InternalRecord,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
    UnknownRecordType,
    decode_group_record,
)
from barnabas.errors import CorruptData

_NOT_GIVEN = -1


def offset_line(key: bytes | None, value: bytes | None) -> str | None:
    """A committed offset; None for a record of another kind. Raises CorruptData."""
    decoded = _decoded(key, value)
    if decoded is None or not isinstance(decoded.key, OffsetCommitKey):
        return None
    name = decoded.key
    shown = "NULL" if decoded.value is None else _offset(decoded.value)
    return f"[{name.group},{name.topic},{name.partition}]::{shown}"


def group_line(key: bytes | None, value: bytes | None) -> str | None:
    """A group with its members; None for a record of another kind. Raises CorruptData."""
    decoded = _decoded(key, value)
    if decoded is None or not isinstance(decoded.key, GroupMetadataKey):
        return None
    shown = "NULL" if decoded.value is None else _group(decoded)
    return f"{decoded.key.group}::{shown}"


def _decoded(key: bytes | None, value: bytes | None) -> InternalRecord | None:
    """The decoded record; None for a kind that only a newer Kafka writes."""
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
    # The first version has no rebalance timeout of its own.
    rebalance_ms = member.rebalance_timeout if version else member.session_timeout
    return (
        f"MemberMetadata(memberId={member.member_id}, "
        f"groupInstanceId={_option(member.group_instance_id)}, "
        f"clientId={member.client_id}, clientHost={member.client_host}, "
        f"sessionTimeoutMs={member.session_timeout}, rebalanceTimeoutMs={rebalance_ms}, "
        f"supportedProtocols=List({'null' if protocol is None else protocol}))"
    )


def _option(text: str | None) -> str:
    return "None" if text is None else f"Some({text})"
