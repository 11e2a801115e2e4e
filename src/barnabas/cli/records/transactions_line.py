"""Records of `__transaction_state` as the lines of Kafka's TransactionLogMessageFormatter. Pure.

    copy::TransactionMetadata(transactionalId=copy, producerId=7, ..., state=Ongoing, ...)

One difference: a transaction's partitions are in order here, in a hash table's order in Kafka.
"""

from __future__ import annotations

from barnabas.coordinator.records import (
    TransactionKey,
    TransactionStatus,
    TransactionValue,
    UnknownRecordType,
    decode_transaction_record,
)

_NAMES = {each.value: each.name for each in TransactionStatus}


def transaction_line(key: bytes | None, value: bytes | None) -> str | None:
    """A transaction; a tombstone's value is NULL; None without a key. Raises CorruptData."""
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
    return f"{transactional_id}::{_shown(transactional_id, decoded.value)}"


def _shown(transactional_id: str, value: TransactionValue) -> str:
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
        f"txnTimeoutMs={value.transaction_timeout_ms}, state={_NAMES.get(status, status)}, "
        f"pendingState=None, topicPartitions=HashSet({listed}), "
        f"txnStartTimestamp={value.start_timestamp_ms}, "
        f"txnLastUpdateTimestamp={value.last_update_timestamp_ms})"
    )
