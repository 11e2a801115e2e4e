"""Replays a partition of an internal topic into a machine, one slice at a time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from barnabas.broker.runtime.disk_threads import run_in
from barnabas.coordinator.decision import NO_PRODUCER_ID, StateRecord
from barnabas.coordinator.records import InternalRecord, UnknownRecordType
from barnabas.errors import CorruptData
from barnabas.records.batch import BatchHeader, iterate_batches, verify_crc
from barnabas.records.control_records import COMMIT, read_marker
from barnabas.records.record import Record, records_of

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from barnabas.broker.coordinator.shard import CoordinatorMachine
    from barnabas.broker.coordinator.state_replica import LogSlice, StateLog

_log = logging.getLogger(__name__)

Decode = Callable[[bytes | None, bytes | None], InternalRecord]

_SLICE_S = 0.004  # how long the event loop is used before other tasks get a turn
_LOOK_EVERY = 32  # the clock is checked once per this many records


async def replay(
    log: StateLog,
    machine: CoordinatorMachine,
    decode: Decode,
    read_bytes: int,
    pool: Executor | None = None,
) -> AsyncIterator[None]:
    """Apply all records in the log one slice at a time, including records that are appended in the
    meantime.

    Each read from the disk covers `read_bytes` and runs in a thread of the `pool`.

    When this method returns, the machine has reached the log end, and nothing has been awaited
    since then. Raises OSError, or raises CorruptData with the offset if a record cannot be read.
    """
    loop = asyncio.get_running_loop()
    unknown: set[int] = set()
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        slices = log.read(max(offset, log.log_start_offset), read_bytes, log.log_end_offset)
        if not slices:
            return  # because compaction has removed the rest
        data = await run_in(pool, partial(_read, slices))
        yield
        slice_end = loop.time() + _SLICE_S
        applied = 0
        for position, header in iterate_batches(data):
            # If the batch were skipped, the coordinator might return older offsets.
            if not verify_crc(data, position, header):
                raise CorruptData(f"the batch at offset {header.base_offset} fails its checksum")
            offset = header.last_offset + 1
            if header.is_control:
                _end_transaction(machine, data, position, header)
                continue
            producer_id = header.producer_id if header.is_transactional else NO_PRODUCER_ID
            for record in records_of(data, position, header):
                _apply(machine, record, producer_id, decode, unknown)
                applied += 1
                if applied % _LOOK_EVERY == 0 and loop.time() > slice_end:
                    await asyncio.sleep(0)
                    yield
                    slice_end = loop.time() + _SLICE_S


def _read(slices: Sequence[LogSlice]) -> bytes:
    """Read the data in a thread, because it may not be in the page cache."""
    try:
        return b"".join([part.read() for part in slices])
    finally:
        for part in slices:
            part.release()


def _end_transaction(
    machine: CoordinatorMachine, data: bytes, position: int, header: BatchHeader
) -> None:
    marker = read_marker(data, position, header)
    if marker is not None:  # if None, it is a different kind of control record
        machine.end_transaction(header.producer_id, marker.type == COMMIT)


def _apply(
    machine: CoordinatorMachine, record: Record, producer_id: int, decode: Decode, unknown: set[int]
) -> None:
    try:
        decoded = decode(record.key, record.value)
    except UnknownRecordType as error:
        # As in Kafka, skip records written by newer coordinators, because they must not stop an
        # older broker.
        if error.version not in unknown:
            unknown.add(error.version)
            _log.warning("skipping records of version %d, which a newer Kafka wrote", error.version)
        return
    except CorruptData as error:
        raise CorruptData(f"the record at offset {record.offset}: {error}") from error
    machine.apply(StateRecord(decoded.key, decoded.value), record.offset, producer_id)
