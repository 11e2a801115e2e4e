"""Formats records of the internal topics like Kafka 3.9's DumpLogSegments. Pure.

    __consumer_offsets     key: {"type":"1","data":{...}} payload: {"version":"3","data":{...}}
    __transaction_state    key: transaction_metadata::transactionalId=tx payload: producerId:7,...

There is one difference: a transaction's partitions are sorted, while Kafka prints them in
hash-table order.
"""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from barnabas.coordinator.records import (
    GroupMetadataValue,
    InternalRecord,
    MemberMetadata,
    TransactionKey,
    TransactionStatus,
    TransactionValue,
    UnknownRecordType,
    decode_group_record,
    decode_transaction_record,
)
from barnabas.errors import CorruptData
from barnabas.protocol.consumer_protocol import (
    CONSUMER_PROTOCOL,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    decode_consumer_protocol,
)
from barnabas.protocol.message import Message
from barnabas.records.record import Record

Shown = tuple[str | None, str | None]
"""The texts after `key:` and `payload:`. A text that is None is left out."""

_DELETED = "<DELETE>"
_ESCAPES = str.maketrans(
    {chr(code): f"\\u{code:04X}" for code in range(32)}
    | {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}
)
_BLOBS: dict[str, type[Message]] = {
    "subscription": ConsumerProtocolSubscription,
    "assignment": ConsumerProtocolAssignment,
}


def show_group_record(record: Record) -> Shown:
    """Show a record of `__consumer_offsets`."""
    try:
        decoded = decode_group_record(record.key, record.value)
        key = {"type": str(decoded.type), "data": _values(decoded.key, decoded.type)}
        return _json(key), _group_payload(decoded)
    except UnknownRecordType as error:
        return f"Unknown record type {error.version} at offset {record.offset}, skipping.", None
    except CorruptData as error:
        return f"Error at offset {record.offset}, skipping. {error}", None


def show_transaction_record(record: Record) -> Shown:
    """Show a record of `__transaction_state`."""
    try:
        decoded = decode_transaction_record(record.key, record.value)
    except UnknownRecordType as error:
        return f"unknown::version={error.version}", None
    except CorruptData as error:
        return f"Error at offset {record.offset}, skipping. {error}", None
    assert isinstance(decoded.key, TransactionKey)
    key = f"transaction_metadata::transactionalId={decoded.key.transactional_id}"
    if decoded.value is None:
        return key, _DELETED
    assert isinstance(decoded.value, TransactionValue)
    return key, _transaction_payload(decoded.value)


def _transaction_payload(value: TransactionValue) -> str:
    status = value.transaction_status
    names = {each.value: each.name for each in TransactionStatus}
    partitions = sorted(
        (topic.topic, partition)
        for topic in value.transaction_partitions or ()
        for partition in topic.partition_ids
    )
    listed = ",".join(f"{topic}-{partition}" for topic, partition in partitions)
    return (
        f"producerId:{value.producer_id},producerEpoch:{value.producer_epoch},"
        f"state={names.get(status, status)},partitions=[{listed}],"
        f"txnLastUpdateTimestamp={value.last_update_timestamp_ms},"
        f"txnTimeoutMs={value.transaction_timeout_ms}"
    )


def _group_payload(decoded: InternalRecord) -> str:
    if decoded.value is None:
        return _DELETED
    data = _values(decoded.value, decoded.version)
    group = decoded.value
    if isinstance(group, GroupMetadataValue) and group.protocol_type == CONSUMER_PROTOCOL:
        for shown, member in zip(data["members"], group.members, strict=True):
            # Kafka decodes these bytes only for the protocol type "consumer". Other types, such as
            # Connect's, have formats of their own.
            shown.update(_consumer_values(member))
    return _json({"version": str(decoded.version), "data": data})


def _consumer_values(member: MemberMetadata) -> dict[str, Any]:
    """Return the values decoded from a member's bytes, omitting values that were never set."""
    values = {}
    for name, cls in _BLOBS.items():
        data = bytes(getattr(member, name))
        # As in Kafka, bytes that were never set are left unchanged.
        if data:
            version, content = decode_consumer_protocol(cls, data)
            values[name] = _values(content, version)
    return values


def _values(message: Message, version: int) -> dict[str, Any]:
    """Return the fields of this version, under Kafka's names."""
    return {
        _camel(field.name): _value(getattr(message, field.name), version)
        for field in message.fields
        if version in field.versions
    }


def _value(value: Any, version: int) -> Any:
    if isinstance(value, Message):
        return _values(value, version)
    if isinstance(value, list):
        return [_value(each, version) for each in value]
    return value


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


def _json(value: Any) -> str:
    """Return JSON as Jackson writes it, that is, without blanks, with non-ASCII text unescaped, and
    with bytes in base64.
    """
    if value is None:
        return "null"
    # Jackson escapes control characters, quotes and backslashes, and writes the rest in UTF-8.
    if isinstance(value, str):
        return f'"{value.translate(_ESCAPES)}"'
    if isinstance(value, dict):
        return "{" + ",".join(f"{_json(name)}:{_json(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_json, value)) + "]"
    if isinstance(value, int):
        return str(value)
    return f'"{b64encode(value).decode()}"'
