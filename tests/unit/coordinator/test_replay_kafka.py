"""GC-3: `__consumer_offsets` as Kafka 3.9 has written it, read again by the group coordinator.

The logs are opened and replayed as a broker does it that becomes the coordinator; what the machine
has then is what Kafka's own tools showed of the groups.
"""

from __future__ import annotations

import asyncio
import json
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from barnabas.broker.coordinator.shard_loading import replay
from barnabas.cluster.layout import GROUP_TOPIC
from barnabas.config import LogConfig
from barnabas.coordinator.groups import Groups
from barnabas.coordinator.offsets import Committed, GroupOffsets, Offsets
from barnabas.coordinator.records import (
    decode_group_record,
    encode_record,
)
from barnabas.coordinator.settings import GroupConfig
from barnabas.protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    decode_consumer_protocol,
)
from barnabas.protocol.message import Message
from barnabas.protocol.messages.describe_groups import DescribedGroup
from barnabas.protocol.messages.list_groups import ListGroupsRequest
from barnabas.records.batch import iterate_batches
from barnabas.records.record import Record, records_of
from barnabas.storage.files import OsFiles
from barnabas.storage.log import Log
from barnabas.storage.store import LogStore

pytestmark = pytest.mark.foreign

OFFSET = 0
FIELDS = {"offset": OFFSET, "leader_epoch": 1, "metadata": 2}
"""The fields of an offset in Kafka's admin client, and their index in `Committed`."""


@pytest.fixture(scope="module")
def fixtures(shared: Path) -> Path:
    return shared / "fixtures" / "kafka-3.9"


@pytest.fixture(scope="module")
def single(fixtures: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[int, Log]]:
    """Of the broker that was stopped cleanly."""
    archive = fixtures / "single" / "logs.tar.gz"
    with group_logs(archive, tmp_path_factory.mktemp("single")) as logs:
        yield logs


def facts(fixtures: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((fixtures / "expected" / f"{name}.json").read_text())
    return found


@contextmanager
def group_logs(archive: Path, directory: Path, broker_id: int = 0) -> Iterator[dict[int, Log]]:
    """The partitions of the offsets topic that hold anything."""
    with tarfile.open(archive) as tar:
        tar.extractall(directory)
    store = LogStore.open(
        OsFiles(), [directory / "logs"], config=LogConfig(), broker_id=broker_id, now_ms=0
    )
    try:
        yield {
            name.partition: log
            for name, log in store.logs.items()
            if name.topic == GROUP_TOPIC and log.log_end_offset
        }
    finally:
        store.close()


def replayed(logs: dict[int, Log]) -> dict[int, Groups]:
    async def read(partition: int, log: Log) -> Groups:
        machine = Groups(partition, 0, GroupConfig())
        async for _ in replay(log, machine, decode_group_record, 1 << 20):
            pass
        return machine

    machines = {partition: asyncio.run(read(partition, log)) for partition, log in logs.items()}
    print(f"{len(machines)} group partitions replayed")
    return machines


def committed(offsets: Offsets) -> dict[str, dict[str, int]]:
    """Group -> partition -> offset, without what is pending."""
    return {
        group_id: {
            f"{topic}-{number}": one[OFFSET] for (topic, number), one in group.committed.items()
        }
        for group_id, group in offsets.groups.items()
        if group.committed
    }


def described(machine: Groups, group_id: str) -> DescribedGroup:
    (reply,) = machine.describe(0, group_id, with_events=False).replies
    assert isinstance(reply.message, DescribedGroup)
    return reply.message


def test_offsets_are_those_that_kafka_returned(fixtures: Path, single: dict[int, Log]) -> None:
    """All groups of the broker, in the partitions where Kafka has them (GC-1)."""
    known = facts(fixtures, "single-coordinators")
    found: dict[str, dict[str, Any]] = {}
    for partition, machine in replayed(single).items():
        for group_id, group in machine.offsets.groups.items():
            assert known["group_partition"][group_id][1] == partition
            found[group_id] = {
                f"{topic}-{number}": {name: one[at] for name, at in FIELDS.items()}
                for (topic, number), one in group.committed.items()
            }
    assert found == {name: group["offsets"] for name, group in known["groups"].items()}


def test_groups_are_those_that_kafka_returned(fixtures: Path, single: dict[int, Log]) -> None:
    """State and members; the one with a static member is Stable, those without a record Empty."""
    known = facts(fixtures, "single-coordinators")
    machines = replayed(single)
    listed = []
    for machine in machines.values():
        (reply,) = machine.list_groups(0, ListGroupsRequest()).replies
        listed += [group.group_id for group in reply.message.groups]  # type: ignore[attr-defined]
    assert sorted(listed) == sorted(known["groups"])
    for group_id, wanted in known["groups"].items():
        group = described(machines[known["group_partition"][group_id][1]], group_id)
        assert (group.group_state, group.protocol_data) == (wanted["state"], wanted["assignor"])
        assert [
            {
                "member_id": member.member_id,
                "instance_id": member.group_instance_id,
                "client_id": member.client_id,
                "host": member.client_host,
                "assignment": assigned(member.member_assignment),
            }
            for member in group.members
        ] == [member | {"assignment": names(member["assignment"])} for member in wanted["members"]]


def assigned(blob: bytes) -> set[str]:
    _, assignment = decode_consumer_protocol(ConsumerProtocolAssignment, blob)
    return {
        f"{one.topic}-{number}"
        for one in assignment.assigned_partitions
        for number in one.partitions
    }


def names(listed: str) -> set[str]:
    return set(listed.strip("[]").split(", "))


@pytest.mark.parametrize(("is_commit", "offset"), [(True, 25), (False, 10)])
def test_an_open_transaction_is_pending_and_its_marker_decides(
    single: dict[int, Log], is_commit: bool, offset: int
) -> None:
    """txn-group: 10 was committed, 20 aborted, 25 is in the open transaction of producer 5000."""
    place, producer_id = ("codec-none", 0), 5000
    offsets = replayed({14: single[14]})[14].offsets
    group = offsets.groups["txn-group"]
    assert group.committed[place][:3] == (10, 0, "committed in txn")
    assert group.pending == {
        producer_id: {place: Committed(25, 0, "pending at shutdown", 1795224911637, -1, 6)}
    }
    offsets.end_transaction(producer_id, is_commit)
    assert offsets.groups["txn-group"].committed[place][OFFSET] == offset


def test_records_are_those_that_kafka_dumped(fixtures: Path, single: dict[int, Log]) -> None:
    """Every field of every record, and what deletes."""
    wanted = facts(fixtures, "single-consumer-offsets")
    judged = 0
    for partition, log in single.items():
        rows = [row for row in wanted[f"{GROUP_TOPIC}-{partition}"] if "key" in row]
        for record, row in zip(records(log), rows, strict=True):
            decoded = decode_group_record(record.key, record.value)
            assert (record.offset, decoded.type) == (row["o"], row["key"]["kver"])
            assert_fields(decoded.key, row["key"])
            assert (decoded.value is None) == (row["value"] is None)
            if decoded.value is not None:
                assert decoded.version == row["value"]["ver"]
                assert_fields(decoded.value, row["value"])
            judged += 1
    print(f"{judged} records compared field by field")
    assert judged > 40


def records(log: Log) -> Iterator[Record]:
    """What is in the log's files, without markers."""
    for path in sorted(log.directory.glob("*.log")):
        data = path.read_bytes()
        for position, header in iterate_batches(data):
            if not header.is_control:
                yield from records_of(data, position, header)


DUMPED = {
    "commit_ts": "commit_timestamp",
    "expire_ts": "expire_timestamp",
    "state_ts": "current_state_timestamp",
    "member": "member_id",
    "instance": "group_instance_id",
    "host": "client_host",
    "rebalance_ms": "rebalance_timeout",
    "session_ms": "session_timeout",
}
"""Names in the fixture that are not those of the fields."""


def assert_fields(message: Message, row: dict[str, Any]) -> None:
    for name, wanted in row.items():
        if name in ("ver", "kver", "type", "subscription", "assignment"):
            continue
        found = getattr(message, DUMPED.get(name, name))
        if name == "members":
            for member, of_member in zip(found, wanted, strict=True):
                assert_fields(member, of_member)
        else:
            assert found == wanted, name


def test_records_are_written_as_kafka_wrote_them(single: dict[int, Log]) -> None:
    """Decoded and encoded again, byte for byte, where the version is the one of Kafka 3.9."""
    compared = kept = 0
    for record in (record for log in single.values() for record in records(log)):
        decoded = decode_group_record(record.key, record.value)
        again = encode_record(decoded.key, decoded.value)
        assert again.key == record.key
        is_newest = decoded.version in (-1, 3)
        assert again.value == record.value or not is_newest
        compared += is_newest
        kept += not is_newest
    print(f"{compared} records written again, {kept} of versions that are only read")
    assert compared > 30


def test_a_directory_from_before_expiry_moved(fixtures: Path, tmp_path: Path) -> None:
    """Inter-broker protocol 2.0: values of version 1, with an expiry that was not set."""
    with group_logs(fixtures / "single-ibp2.0" / "logs.tar.gz", tmp_path) as logs:
        (machine,) = replayed(logs).values()
    assert machine.offsets.groups["legacy-g"].committed == {
        ("legacy-v2", 0): Committed(5, -1, "ibp20", 1795224593782, -1, 1)
    }
    group = described(machine, "legacy-g")
    assert (group.group_state, group.protocol_type) == ("Empty", "consumer")


def test_after_a_crash_the_same_is_there(fixtures: Path, tmp_path: Path) -> None:
    """As Kafka had it after its own start; one offset says itself when it expires."""
    known = facts(fixtures, "crash")
    for variant, wanted in known.items():
        directory = tmp_path / variant
        directory.mkdir()
        with group_logs(fixtures / "crash" / f"{variant}.tar.gz", directory) as logs:
            machines = replayed(logs)
        found: dict[str, dict[str, int]] = {}
        for machine in machines.values():
            found |= committed(machine.offsets)
            for group in machine.offsets.groups.values():
                one = Committed(*group.committed["one", 0])
                assert (one.expire_timestamp_ms == 4948825145895) == (one.offset == 8)
        assert found == wanted["groups"], variant


def test_every_replica_of_a_cluster_gives_the_same_coordinator(
    fixtures: Path, tmp_path: Path
) -> None:
    """A committed and an aborted transaction, and a plain commit after them."""
    states = []
    for broker_id in (1, 2, 3):
        directory = tmp_path / str(broker_id)
        directory.mkdir()
        archive = fixtures / "cluster" / f"broker{broker_id}.tar.gz"
        with group_logs(archive, directory, broker_id) as logs:
            (machine,) = replayed(logs).values()
        states.append(machine.offsets.groups)
    assert states[0] == states[1] == states[2]
    assert states[0] == {
        "java-tx-group": GroupOffsets(
            {
                ("r3", 0): Committed(22, 0, "", 1795225680894, -1, 6),
                ("r3", 1): Committed(0, -1, "", 1795225680894, -1, 5),
            },
            {},
        )
    }
