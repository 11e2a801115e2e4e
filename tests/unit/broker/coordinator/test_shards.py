"""The pump of the coordinators: append, apply, reply; taken, loaded and dropped by leader epochs.

The machine here is the smallest that there can be: it remembers the last number given to a name.
Logs, replicas and the loop are the broker's own.
"""

from __future__ import annotations

import asyncio
import gc
import logging
from pathlib import Path

import pytest

from barnabas.broker.coordinator.pending_reply import join_outcomes
from barnabas.broker.outcome import Staged
from barnabas.cluster.controller_requests import StopReplica
from barnabas.cluster.layout import GROUP_TOPIC
from barnabas.coordinator.decision import (
    Decision,
    Markers,
    StateRecord,
    TransactionalBatch,
)
from barnabas.coordinator.records import (
    GroupMetadataKey,
    GroupMetadataValue,
    encode_record,
)
from barnabas.coordinator.state_partition import partition_of
from barnabas.errors import (
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    NotCoordinator,
)
from barnabas.protocol.messages.find_coordinator import FindCoordinatorResponse
from barnabas.records.batch import iterate_batches
from barnabas.records.control_records import ABORT, COMMIT, Marker, build_marker
from barnabas.records.record import BatchBuilder
from barnabas.types import TopicPartition
from tests.kit.broker.tallies import NAME, PARTITIONS, answered, failed, record, run, started
from tests.kit.waiting import until


def test_what_was_asked_is_answered_when_the_log_has_it(tmp_path: Path) -> None:
    async def test(directory: Path) -> None:
        async with started(directory) as node:
            node.lead(0, 1)
            outcome = node.put(NAME, 7)
            assert isinstance(outcome, Staged)  # appended, and not yet written
            assert (await node.answer(outcome)).node_id == 7
            at_once = node.get(NAME)
            assert isinstance(at_once, FindCoordinatorResponse)
            assert at_once.node_id == 7

    run(test, tmp_path)


def test_a_parked_request_is_answered_by_anothers_decision(tmp_path: Path) -> None:
    async def test(directory: Path) -> None:
        async with started(directory) as node:
            node.lead(0, 1)
            parked = asyncio.create_task(node.answer(node.get(NAME)))
            await asyncio.sleep(0.01)
            assert not parked.done()
            assert (await node.answer(node.put(NAME, 3))).node_id == 3
            assert (await parked).node_id == 3

    run(test, tmp_path)


def test_a_replay_gives_the_state_again_gc_3(tmp_path: Path) -> None:
    async def test(directory: Path) -> None:
        async with started(directory) as node:
            node.lead(0, 1)
            for number in range(200):
                await node.answer(node.put(NAME, number))
            replica = node.replicas.leader_of((GROUP_TOPIC, 0))
            for type_, producer_id in ((COMMIT, 4000), (ABORT, 4001)):
                marker = Marker(0, node.clock.wall_ms(), type_, coordinator_epoch=0)
                batch = build_marker(marker, producer_id, 0)
                replica.append_control(memoryview(bytearray(batch)), node.clock.wall_ms())
            node.replicas.write_staged()
        async with started(directory) as node:
            node.lead(0, 2)
            with pytest.raises(CoordinatorLoadInProgress):
                node.shards.shard_of(NAME)
            assert node.shards.is_loading
            await until(lambda: not node.shards.is_loading)
            machine = node.shards.shard_of(NAME).machine
            assert machine.numbers == {NAME: 199}
            assert machine.ended == [(4000, True), (4001, False)]
            assert machine.is_loaded
            assert machine.epoch == 2

    run(test, tmp_path)


def test_leadership_that_goes_takes_the_shard_with_it(tmp_path: Path) -> None:
    """Waiting clients get an error, and the next epoch begins with a replay, under load too."""

    async def test(directory: Path) -> None:
        async with started(directory) as node:
            node.lead(0, 1)
            await node.answer(node.put(NAME, 1))
            parked = asyncio.create_task(node.answer(node.get("never")))
            if partition_of("never", PARTITIONS) != 0:
                node.lead(1, 1)
            await asyncio.sleep(0)
            old = node.shards.shard_of(NAME)
            unanswered = node.put(NAME, 2)
            node.lead(0, 2, leader=9)
            node.lead(1, 2, leader=9)
            assert (await node.answer(unanswered)).error_code in (0, NotCoordinator.code)
            assert (await parked).error_code == NotCoordinator.code
            with pytest.raises(NotCoordinator):
                node.shards.shard_of(NAME)
            late = old.ask(lambda machine, ticket, _: machine.put(ticket, NAME, 3), failed)
            assert (await node.answer(late)).error_code == NotCoordinator.code
            made = len(node.machines)
            node.lead(0, 3)
            while len(node.machines) == made:
                await asyncio.sleep(0)
            assert node.shards.is_loading  # it is being read
            node.lead(0, 4, leader=9)
            node.lead(0, 5)
            await until(lambda: not node.shards.is_loading)
            assert node.shards.shard_of(NAME).machine.epoch == 5
            for epoch in range(6, 8):  # back and forth, faster than a load begins
                node.lead(0, epoch, leader=epoch % 2 * 9)
            node.lead(0, 8)
            await until(lambda: not node.shards.is_loading)
            machine = node.shards.shard_of(NAME).machine
            assert machine.epoch == 8
            assert machine.numbers[NAME] == 2

    run(test, tmp_path)


def test_a_refused_append_has_changed_nothing(tmp_path: Path) -> None:
    async def test(directory: Path) -> None:
        async with started(directory, {"min.insync.replicas": "2"}) as node:
            node.lead(0, 1)
            shard = node.shards.shard_of(NAME)
            shard.replica.partition.configure(1)
            await node.answer(node.put(NAME, 1))
            end_offset = shard.replica.log.log_end_offset
            node.lead(0, 2, others=(5,))
            await until(lambda: not node.shards.is_loading)
            shard = node.shards.shard_of(NAME)
            shard.replica.partition.configure(2)
            parked = asyncio.create_task(node.answer(node.get("new" + NAME)))
            await asyncio.sleep(0)
            answer = await node.answer(node.put(NAME, 2))
            assert answer.error_code == CoordinatorNotAvailable.code
            assert shard.machine.numbers == {NAME: 1}
            assert shard.replica.log.log_end_offset == end_offset
            parked.cancel()

    run(test, tmp_path)


def test_tombstones_without_a_waiting_client_are_written_below_the_minimum_isr_gc_3(
    tmp_path: Path,
) -> None:
    """As in Kafka, which writes the tombstones of offsets with acks=0: those of a topic that is
    deleted are not written a second time."""

    async def test(directory: Path) -> None:
        async with started(directory) as node:
            node.lead(0, 1)
            await node.answer(node.put(NAME, 1))
            node.lead(0, 2, others=(5,))
            await until(lambda: not node.shards.is_loading)
            shard = node.shards.shard_of(NAME)
            shard.replica.partition.configure(2)
            shard.carry_out(Decision((record("other", 1),)))
            assert shard.machine.numbers == {NAME: 1}
            shard.carry_out(Decision((record(NAME, 1)._replace(value=None),)))
            assert shard.machine.numbers == {}
            node.replicas.write_staged()
            assert shard.replica.log.log_end_offset == 2

    run(test, tmp_path)


def test_a_corrupt_record_refuses_its_shard_alone_gc_3(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def test(directory: Path) -> None:
        async with started(directory) as node:
            node.lead(0, 1)
            builder = BatchBuilder()
            builder.append(0, b"\x00\x01\x00", b"\x00\x03")  # a key that is cut
            replica = node.replicas.leader_of((GROUP_TOPIC, 0))
            replica.append_own(memoryview(bytearray(builder.build())), node.clock.wall_ms())
            node.replicas.write_staged()
        async with started(directory) as node:
            node.lead(0, 2)
            node.lead(1, 2)
            await until(lambda: not node.shards.is_loading)
            with pytest.raises(CoordinatorNotAvailable):
                node.shards.shard_of(NAME)
            other = next(name for name in "abcdef" if partition_of(name, PARTITIONS) == 1)
            assert (await node.answer(node.put(other, 1))).node_id == 1

    with caplog.at_level(logging.ERROR):
        run(test, tmp_path)
    (line,) = [each.getMessage() for each in caplog.records]
    assert f"{GROUP_TOPIC}-0 cannot be loaded: the record at offset 0" in line
    assert "barnabas dump --verify" in line


def test_a_record_that_the_machine_breaks_on_holds_up_no_other_partition(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """GC-3: a mistake of ours refuses one partition, as what is corrupt does."""

    async def test(directory: Path) -> None:
        async with started(directory) as node:
            for partition in range(PARTITIONS):
                node.lead(partition, 1)
                key = GroupMetadataKey(group="g")  # of which a tally knows nothing
                value = GroupMetadataValue(protocol_type="", generation=1, members=[])
                odd = record("x", 1) if partition else StateRecord(key, value)
                builder = BatchBuilder()
                builder.append(0, *encode_record(*odd))
                replica = node.replicas.leader_of((GROUP_TOPIC, partition))
                replica.append_own(memoryview(bytearray(builder.build())), node.clock.wall_ms())
            node.replicas.write_staged()
        async with started(directory) as node:
            node.lead(0, 2)
            node.lead(1, 2)
            await until(lambda: not node.shards.is_loading)
            assert node.shards.shard_at(0) is None
            assert node.shards.shard_at(1) is not None

    with caplog.at_level(logging.ERROR):
        run(test, tmp_path)
    (line,) = caplog.records
    assert line.exc_info, "the traceback is logged"


def test_records_of_a_newer_kafka_are_skipped(tmp_path: Path) -> None:
    async def test(directory: Path) -> None:
        async with started(directory) as node:
            node.lead(0, 1)
            builder = BatchBuilder()
            builder.append(0, b"\x00\x63new", b"\x00\x00")
            replica = node.replicas.leader_of((GROUP_TOPIC, 0))
            replica.append_own(memoryview(bytearray(builder.build())), node.clock.wall_ms())
            await node.answer(node.put(NAME, 5))
        async with started(directory) as node:
            node.lead(0, 2)
            await until(lambda: not node.shards.is_loading)
            assert node.shards.shard_of(NAME).machine.numbers == {NAME: 5}

    run(test, tmp_path)


def test_more_is_forgotten_at_once_than_one_batch_takes(tmp_path: Path) -> None:
    """GC-3: else a group with very many offsets could never be deleted."""

    async def test(directory: Path) -> None:
        async with started(directory) as node:
            node.lead(0, 1)
            shard = node.shards.shard_of(NAME)
            for first in range(0, 12_000, 1000):
                names = (f"{number:0100}" for number in range(first, first + 1000))
                shard.carry_out(Decision(tuple(record(name, 1) for name in names)))
            asked = shard.ask(lambda machine, ticket, _: machine.forget(ticket), failed)
            assert (await node.answer(asked)).node_id == 12_000
            assert shard.machine.numbers == {}

    run(test, tmp_path)


def test_a_transactions_batch_has_the_sequence_that_kafka_gives_it(tmp_path: Path) -> None:
    """GC-3: 0, always. Kafka's cleaner gives a log up at a producer's batch without a sequence."""

    async def test(directory: Path) -> None:
        async with started(directory) as node:
            node.lead(0, 1)
            shard = node.shards.shard_of(NAME)
            for number in range(2):
                batch = TransactionalBatch("tx", 7, 3)
                shard.carry_out(Decision((record(NAME, number),), batch=batch))
            node.replicas.write_staged()
            log = shard.replica.log
            (part,) = log.read(0, 1 << 20, log.log_end_offset)
            headers = [header for _, header in iterate_batches(part.read())]
            part.release()
            assert [
                (each.producer_id, each.producer_epoch, each.base_sequence, each.is_transactional)
                for each in headers
            ] == 2 * [(7, 3, 0, True)]

    run(test, tmp_path)


def test_markers_go_out_when_the_decision_is_committed(tmp_path: Path) -> None:
    async def test(directory: Path) -> None:
        async with started(directory) as node:
            node.lead(0, 1)
            shard = node.shards.shard_of(NAME)
            markers = Markers("tx", 1, 0, True, 1, ())
            shard.carry_out(Decision((record("x", 1),), markers=(markers,)))
            assert not node.markers
            await until(lambda: node.markers == [markers])

    run(test, tmp_path)


def test_the_disk_that_fails_answers_everybody(tmp_path: Path) -> None:
    async def test(directory: Path) -> None:
        async with started(directory) as node:
            node.lead(0, 1)
            replica = node.replicas.leader_of((GROUP_TOPIC, 0))
            outcome = node.put(NAME, 1)
            parked = asyncio.create_task(node.answer(node.get("new" + NAME)))
            replica.fail(OSError(5, "Input/output error"))
            assert (await node.answer(outcome)).error_code == NotCoordinator.code
            parked.cancel()
            with pytest.raises(NotCoordinator):
                node.shards.shard_of(NAME)

    run(test, tmp_path)


def test_several_shards_make_one_answer(tmp_path: Path) -> None:
    async def test(directory: Path) -> None:
        async with started(directory) as node:
            node.lead(0, 1)
            node.lead(1, 1)
            names = {partition_of(name, PARTITIONS): name for name in "abcdef"}
            outcome = join_outcomes(
                [node.put(names[0], 1), node.put(names[1], 2)],
                lambda each: answered(sum(one.node_id for one in each)),
            )
            assert (await node.answer(outcome)).node_id == 3
            again = join_outcomes(
                [node.get(names[0]), node.get(names[1])],
                lambda each: answered(sum(one.node_id for one in each)),
            )
            assert isinstance(again, FindCoordinatorResponse)

    run(test, tmp_path)


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_a_client_that_disconnects_leaves_no_coroutine_unawaited(
    tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    async def test(directory: Path) -> None:
        async with started(directory) as node:
            node.lead(0, 1)
            node.lead(1, 1)
            names = {partition_of(name, PARTITIONS): name for name in "abcdef"}
            both = join_outcomes([node.get(names[0]), node.get(names[1])], lambda each: each[0])
            waiting = asyncio.create_task(node.answer(both))
            await asyncio.sleep(0.01)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
        gc.collect()

    run(test, tmp_path)
    assert not [each for each in recwarn if "never awaited" in str(each.message)]


def test_a_deleted_topic_leaves_no_shard(tmp_path: Path) -> None:
    async def test(directory: Path) -> None:
        async with started(directory) as node:
            node.lead(0, 1)
            names = (TopicPartition(GROUP_TOPIC, 0),)
            node.role_changes.apply_stop_replica(StopReplica(0, 1, names, delete=True))
            with pytest.raises(NotCoordinator):
                node.shards.shard_of(NAME)

    run(test, tmp_path)


def test_a_partition_deleted_before_it_was_written_does_no_harm(tmp_path: Path) -> None:
    """What a timer appends waits for the end of the loop's turn, in which anything may happen."""

    async def test(directory: Path) -> None:
        async with started(directory) as node:
            node.lead(0, 1)
            node.lead(1, 1)
            names = {partition_of(name, PARTITIONS): name for name in "abcdef"}
            lost, kept = node.put(names[0], 1), node.put(names[1], 2)
            gone = (TopicPartition(GROUP_TOPIC, 0),)
            node.role_changes.apply_stop_replica(StopReplica(0, 1, gone, delete=True))
            node.replicas.write_staged()
            assert (await node.answer(kept)).node_id == 2
            assert (await node.answer(lost)).error_code == NotCoordinator.code

    run(test, tmp_path)


def test_a_long_replay_leaves_the_loop_to_others_gc_3(tmp_path: Path) -> None:
    """Ten thousand records are applied in many turns, and what is appended meanwhile is read."""

    async def test(directory: Path) -> None:
        async with started(directory) as node:
            node.lead(0, 1)
            replica = node.replicas.leader_of((GROUP_TOPIC, 0))
            shard = node.shards.shard_of(NAME)
            for first in range(0, 10_000, 100):
                records = tuple(record(NAME, number) for number in range(first, first + 100))
                shard.carry_out(Decision(records))
            node.replicas.write_staged()
            node.lead(0, 2)
            seen: set[int | None] = set()
            while node.shards.is_loading:
                if len(node.machines) == 2:
                    seen.add(node.machines[-1].numbers.get(NAME))
                if len(seen) == 2:
                    builder = BatchBuilder()
                    key = b"\x00\x01\x00\x04late\x00\x01t\x00\x00\x00\x00"
                    value = b"\x00\x03" + bytes(7) + b"\x2a" + b"\xff" * 4 + bytes(2) + bytes(8)
                    builder.append(0, key, value)
                    replica.append_own(memoryview(bytearray(builder.build())), 0)
                await asyncio.sleep(0)
            assert len(seen) > 4
            assert node.shards.shard_of(NAME).machine.numbers == {NAME: 9999, "late": 42}

    run(test, tmp_path)
