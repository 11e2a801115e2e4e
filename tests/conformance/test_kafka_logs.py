"""Log directories written by a real Kafka 3.9.1 open, read back, recover and close as it says.

ST-1 (a real Kafka's directories), ST-2 (segments), ST-8 (clean stop, torn tail), PR-6 (snapshots),
CO-6 (aborted and open transactions). Each test prints how many partitions it has judged.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.config import LogConfig
from barnabas.errors import CorruptData
from barnabas.records.batch import BatchHeader, iterate_batches
from barnabas.records.compression import CODEC_NAMES
from barnabas.records.control_records import ABORT, read_marker
from barnabas.records.record import Record, iterate_records
from barnabas.storage.files import OsFiles
from barnabas.storage.gaps import FILE_NAME as GAPS
from barnabas.storage.loading import Start
from barnabas.storage.log import Log
from barnabas.storage.recovery import open_log
from barnabas.storage.snapshot import decode_snapshot, encode_snapshot
from barnabas.storage.store import LogStore
from barnabas.types import TopicPartition
from tests.kit.storage.times import max_timestamp_offset

# Both of these have the columns of the wrapper; what is inside needs its decompression.
_LEGACY_UNKNOWN = {"base", "count"}

SEGMENTED = {
    "segs-0": LogConfig(segment_bytes=8192, index_interval_bytes=512, segment_index_bytes=2048),
    "segs-indexfull-0": LogConfig(index_interval_bytes=64, segment_index_bytes=64),
    "segs-time-0": LogConfig(segment_ms=10000, index_interval_bytes=64),
    "idem-0": LogConfig(segment_bytes=2048, index_interval_bytes=256, segment_index_bytes=1024),
    "txn-0": LogConfig(segment_bytes=2500, index_interval_bytes=256, segment_index_bytes=1024),
    "txn-open-0": LogConfig(),
}


@pytest.fixture(scope="module")
def fixtures(shared: Path) -> Path:
    return shared / "fixtures" / "kafka-3.9"


@pytest.fixture(scope="module")
def expected(fixtures: Path) -> dict[str, Any]:
    return _json(fixtures / "expected" / "single-batches.json")


@pytest.fixture(scope="module")
def expected_records(fixtures: Path) -> dict[str, Any]:
    return _json(fixtures / "expected" / "single-records.json")


@pytest.fixture(scope="module")
def single(fixtures: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The clean log directory of broker 0, as Kafka left it; not to be changed."""
    return _unpack(fixtures / "single" / "logs.tar.gz", tmp_path_factory.mktemp("single"))


@pytest.fixture(scope="module")
def store(single: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LogStore]:
    copy = tmp_path_factory.mktemp("opened") / "logs"
    shutil.copytree(single, copy)
    opened = LogStore.open(OsFiles(), [copy], config=LogConfig(), broker_id=0, now_ms=0)
    yield opened
    opened.close()


def test_every_replica_of_the_directory_is_opened(
    store: LogStore, expected: dict[str, Any]
) -> None:
    """TP-3: directories are named by topic and partition, the deleted one is not among them."""
    _print_count(len(store.logs), "opened")
    names = {str(name) for name in store.logs}
    wanted = {name for name in expected if not name.startswith("_") or name.startswith("__")}
    assert wanted - names == {n for n in wanted if n.endswith("-delete")}
    assert store.directories.cluster_id == "Bym1qi5rRNGEX42HBFeknA"
    assert TopicPartition("a-b-0", 0) in store.logs


def test_st_1_offsets_epochs_and_batches_are_what_kafka_says(
    store: LogStore, expected: dict[str, Any]
) -> None:
    columns = expected["_columns_of_batches"]
    judged = 0
    for name, log in _logs(store, expected):
        judged += 1
        facts = expected[name]
        assert log.log_start_offset == facts["log_start"], name
        assert log.log_end_offset == facts["log_end"], name
        # Kafka forgets at a start what begins at the log's end. Of a log whose records were all
        # deleted we do not: it is the epoch of the last one, by which a leader may be found.
        is_emptied = 0 < log.log_start_offset == log.log_end_offset
        assert [list(entry) for entry in log.epochs.entries] == [
            entry for entry in facts["leader_epochs"] if is_emptied or entry[1] < log.log_end_offset
        ], name
        assert [segment.base_offset for segment in log.segments] == [
            segment["base"] for segment in facts["segments"]
        ]
        for segment, wanted in zip(log.segments, facts["segments"], strict=True):
            found = [_columns(at, header) for at, header in segment.headers(0)]
            for row, want in zip(found, wanted["batches"], strict=True):
                _assert_batch(row, dict(zip(columns, want, strict=True)))
    _print_count(judged, "compared batch by batch")


def test_st_1_records_are_what_kafka_says(
    store: LogStore, expected: dict[str, Any], expected_records: dict[str, Any]
) -> None:
    """Of every codec and magic, through `Log.read` and `iterate_records`."""
    compared = 0
    for name, log in _logs(store, expected):
        if name in expected_records:
            wanted = [
                record
                for record in _expanded(expected_records[name])
                if record.offset >= log.log_start_offset
            ]
            found = [
                record._replace(timestamp_type=0)
                for record in iterate_records(_read_all(log))
                if record.offset >= log.log_start_offset
            ]
            differing = [pair for pair in zip(found, wanted, strict=True) if pair[0] != pair[1]]
            assert differing == [], name
            compared += len(found)
    assert compared > 9000


def test_st_4_the_youngest_record_is_what_kafka_says(
    store: LogStore, expected: dict[str, Any]
) -> None:
    for name, log in _logs(store, expected):
        wanted = expected[name]["max_timestamp_offset"]
        if 0 <= wanted[1] < log.log_start_offset:
            wanted = [-1, -1]  # Kafka names a record that was deleted; here none is left
            assert log.log_start_offset == log.log_end_offset, name
        found = max_timestamp_offset(log)
        assert wanted == ([-1, -1] if found is None else [found.timestamp, found.offset]), name


def test_pr_6_producers_are_what_kafka_says(
    store: LogStore, single: Path, expected: dict[str, Any]
) -> None:
    """The state after the log, and each snapshot file, entry by entry and byte by byte."""
    for name, log in _logs(store, expected):
        for offset, wanted in expected[name].get("snapshots", {}).items():
            raw = (single / name / f"{int(offset):020}.snapshot").read_bytes()
            producers = decode_snapshot(raw)
            assert encode_snapshot(producers) == raw
            assert sorted(_producer_rows(producers)) == sorted(wanted)
            if int(offset) == log.log_end_offset:
                assert sorted(_producer_rows(log.producers)) == sorted(wanted), name


def test_co_6_transactions_are_what_kafka_says(
    store: LogStore, expected: dict[str, Any], fixtures: Path
) -> None:
    """Aborted ones entry by entry, the last stable offset, and what a reader of committed records
    is left with."""
    facts = _json(fixtures / "expected" / "single-read.json")
    judged = with_aborted = 0
    for name, log in _logs(store, expected):
        judged += 1
        for segment, wanted in zip(log.segments, expected[name]["segments"], strict=True):
            index = segment.aborted
            found = [] if index is None else [list(each) for each in index.entries(0, 10**6)]
            assert found == wanted.get("txnindex", []), name
            with_aborted += bool(found)
        end = log.log_end_offset
        assert log.last_stable_offset(end) == expected[name]["lso"], name
        if "read_committed" in facts.get(name, {}):
            assert _ranges(_committed(log)) == facts[name]["read_committed"], name
        for each in expected[name].get("active_producers", ()):
            producer = log.producers.get(each["producer_id"])
            assert producer is not None
            assert producer.transaction_offset == each["txn_start"], name
            assert producer.epoch == each["epoch"]
            assert producer.last_sequence == each["last_sequence"]
    _print_count(judged, f"asked for their transactions, {with_aborted} segments with aborted ones")


def test_co_6_what_is_read_does_not_depend_on_the_fetches(store: LogStore) -> None:
    """From every offset, in pieces of one batch and of several."""
    log = store.logs[TopicPartition("txn", 0)]
    whole = list(_committed(log))
    for start in range(log.log_end_offset):
        for max_bytes in (1, 500, 3000):
            assert list(_committed(log, start, max_bytes)) == [
                offset for offset in whole if offset >= start
            ]


def test_co_6_transaction_indexes_are_rebuilt_as_kafka_made_them(
    single: Path, expected: dict[str, Any], tmp_path: Path
) -> None:
    """After a crash, from the log alone: byte for byte, and so are the last stable offsets."""
    copy = tmp_path / "logs"
    shutil.copytree(single, copy)
    for name in (".kafka_cleanshutdown", "recovery-point-offset-checkpoint"):
        (copy / name).unlink()
    for pattern in ("*/*.txnindex", "*/*.snapshot"):
        for path in copy.glob(pattern):
            path.unlink()
    store = LogStore.open(OsFiles(), [copy], config=LogConfig(), broker_id=0, now_ms=0)
    judged = 0
    for name, log in _logs(store, expected):
        if log.log_start_offset > log.segments[0].base_offset or name.startswith("compact"):
            continue  # what began a transaction may be gone
        judged += 1
        assert log.log_end_offset == expected[name]["log_end"]
        assert log.last_stable_offset(log.log_end_offset) == expected[name]["lso"], name
    store.close()
    compared = 0
    for path in single.glob("*/*.txnindex"):
        if not path.parent.name.startswith("compact"):
            again = copy / path.parent.name / path.name
            assert again.read_bytes() == path.read_bytes(), again
            compared += 1
    assert compared >= 5
    _print_count(judged, f"recovered without a checkpoint, {compared} transaction indexes")


def test_st_8_opening_and_closing_changes_no_byte(single: Path, tmp_path: Path) -> None:
    """A clean stop leaves exactly what Kafka left, so Kafka would start on it as well."""
    copy = tmp_path / "logs"
    shutil.copytree(single, copy)
    before = _contents(copy)
    store = LogStore.open(OsFiles(), [copy], config=LogConfig(), broker_id=0, now_ms=0)
    assert not (copy / ".kafka_cleanshutdown").exists()
    store.checkpoint_high_watermarks({})
    store.close()
    after = _contents(copy)
    # Kafka drops at its next start, too, what an earlier stop left in the middle of a segment.
    stray = {name for name in before.keys() - after.keys() if name.endswith(".snapshot")}
    deleted = {name for name in before if "-delete/" in name}
    assert before.keys() - after.keys() == stray | deleted
    # Kafka removes that again before it looks at anything else.
    noted = {f"{path.name}/{GAPS}" for path in copy.iterdir() if path.is_dir()}
    assert after.keys() - before.keys() == {".lock"} | noted
    for name in before.keys() & after.keys():
        if name.endswith("-offset-checkpoint"):
            assert sorted(after[name].split(b"\n")) == sorted(before[name].split(b"\n"))
        elif not name.endswith("leader-epoch-checkpoint"):
            # (An epoch that has no records yet is given to its leader again.)
            assert after[name] == before[name], name


@pytest.mark.parametrize("name", SEGMENTED)
def test_st_2_the_same_appends_make_the_same_files(
    name: str, single: Path, expected: dict[str, Any], tmp_path: Path
) -> None:
    """Segments, both indexes, snapshots and epochs equal those of Kafka, byte for byte."""
    source = single / name
    log = open_log(OsFiles(), tmp_path, TopicPartition("t", 0), SEGMENTED[name], Start(True))
    for path in sorted(source.glob("*.log")):
        raw = path.read_bytes()
        for position, header in iterate_batches(raw):
            batch = bytearray(raw[position : position + header.size_bytes])
            batch[0:8] = bytes(8)
            append = log.append_control if header.is_control else log.append
            # Every other batch waits for the next one, as those of one request do.
            result = append(memoryview(batch), header.partition_leader_epoch, 0)
            assert result.base_offset == header.base_offset
            if header.base_offset % 2:
                log.write_staged()
    log.close()
    for path in source.iterdir():
        if path.name not in ("partition.metadata", "leader-epoch-checkpoint"):
            assert (tmp_path / path.name).read_bytes() == path.read_bytes(), path.name
    assert {p.name for p in tmp_path.iterdir()} | {"partition.metadata"} == {
        p.name for p in source.iterdir()
    }


def test_a_directory_from_before_topic_ids_is_read(fixtures: Path, tmp_path: Path) -> None:
    """Inter-broker protocol 2.0: no `partition.metadata`, messages of magic 0, 1 and 2."""
    facts = _json(fixtures / "expected" / "single-ibp2.0.json")
    logs = _unpack(fixtures / "single-ibp2.0" / "logs.tar.gz", tmp_path)
    store = LogStore.open(OsFiles(), [logs], config=LogConfig(), broker_id=0, now_ms=0)
    for name, records in facts["_records"].items():
        topic, _, partition = name.rpartition("-")
        log = store.logs[TopicPartition(topic, int(partition))]
        assert log.topic_id is None
        assert log.log_start_offset == facts[name]["log_start"]
        assert log.log_end_offset == facts[name]["log_end"]
        assert log.last_stable_offset(log.log_end_offset) == facts[name]["lso"]
        found = [each._replace(timestamp_type=0) for each in iterate_records(_read_all(log))]
        assert found == list(_expanded(records))
    _print_count(len(facts["_records"]), "read of inter-broker protocol 2.0")
    store.close()


# --- crashes -------------------------------------------------------------------------------------

CRASHED = ("base", "torn", "bitflip", "no-recovery-point", "leftovers")


@pytest.mark.parametrize("variant", CRASHED)
def test_st_8_a_crashed_directory_is_cut_where_kafka_cut_it(
    variant: str, fixtures: Path, tmp_path: Path
) -> None:
    facts = _json(fixtures / "expected" / "crash.json")[variant]
    logs = _unpack(fixtures / "crash" / f"{variant}.tar.gz", tmp_path)
    before = {path: path.read_bytes() for path in logs.glob("txn-0/*.txnindex")}
    config = LogConfig(index_interval_bytes=200, segment_index_bytes=1024)
    store = LogStore.open(OsFiles(), [logs], config=config, broker_id=0, now_ms=0)
    for name, wanted in facts["after_start"].items():
        topic, _, partition = name.rpartition("-")
        log = store.logs[TopicPartition(topic, int(partition))]
        assert log.log_end_offset == wanted["log_end"], name
        assert log.log_start_offset == wanted["log_start"], name
        assert log.last_stable_offset(log.log_end_offset) == wanted["lso"], name
        log.assign_leader_epoch(log.epochs.latest if "leader_epoch" not in wanted else 0)
        if "read_uncommitted" in wanted:
            assert _ranges(_offsets(log)) == wanted["read_uncommitted"], name
        if "read_committed" in wanted:
            assert _ranges(_committed(log)) == wanted["read_committed"], name
        for producer_id, epoch, sequence, began in wanted.get("producers", ()):
            producer = log.producers.get(producer_id)
            assert producer is not None
            assert (producer.epoch, producer.last_sequence) == (epoch, sequence)
            assert producer.transaction_offset == began
    store.close()
    _print_count(len(facts["after_start"]), f"recovered from the crash {variant!r}")
    for path, raw in before.items():
        # Whatever was not cut was made again with the same entries.
        assert raw.startswith(path.read_bytes() if path.exists() else b""), path
    for name, wanted in facts.get("files_after_clean_stop", {}).items():
        if name == "one-0":
            continue  # has another index interval
        found = {path.name: path.stat().st_size for path in (logs / name).iterdir()}
        # What it cut Kafka keeps for another minute.
        assert _comparable(found) == _comparable(wanted), name


def _offsets(log: Log) -> Iterator[int]:
    """What a consumer gets, up to a batch that was damaged below the recovery point."""
    try:
        for record in iterate_records(_read_all(log)):
            yield record.offset
    except CorruptData:
        return


def _committed(log: Log, start: int | None = None, max_bytes: int = 1 << 30) -> Iterator[int]:
    """What a consumer of committed records gets, fetch by fetch, as every client's code does it."""
    offset = log.log_start_offset if start is None else start
    stable = log.last_stable_offset(log.log_end_offset)
    while offset < stable:
        slices = log.read(offset, max_bytes, stable)
        raw = b"".join(each.read() for each in slices)
        for each in slices:
            each.release()
        batches = list(iterate_batches(raw))
        if not batches:
            return  # the last batches were compacted away
        end = batches[-1][1].last_offset + 1
        aborted = sorted(log.aborted_transactions(offset, end), key=lambda each: each.first_offset)
        skipped: set[int] = set()
        for position, header in batches:
            while aborted and aborted[0].first_offset <= header.last_offset:
                skipped.add(aborted.pop(0).producer_id)
            if header.is_control:
                marker = read_marker(raw, position, header)
                if marker is not None and marker.type == ABORT:
                    skipped.discard(header.producer_id)
            elif not (header.is_transactional and header.producer_id in skipped):
                batch = raw[position : position + header.size_bytes]
                yield from (each.offset for each in iterate_records(batch) if each.offset >= offset)
        offset = end


def _print_count(count: int, what: str) -> None:
    """Seen under `pytest -rP`, and in the report of a failure."""
    assert count > 0
    print(f"{count} partitions {what}")


def _comparable(sizes: dict[str, int]) -> dict[str, int]:
    return {name: size for name, size in sizes.items() if not name.endswith(".deleted")}


# --- the expectations' form ----------------------------------------------------------------------


def _json(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def _unpack(archive: Path, target: Path) -> Path:
    with tarfile.open(archive) as tar:
        tar.extractall(target)
    return target / "logs"


def _contents(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file()
    }


def _logs(store: LogStore, expected: dict[str, Any]) -> Iterator[tuple[str, Log]]:
    for name, log in store.logs.items():
        if str(name) in expected:
            yield str(name), log


def _read_all(log: Log) -> bytes:
    slices = log.read(log.log_start_offset, 1 << 30, log.log_end_offset)
    raw = b"".join(each.read() for each in slices)
    for each in slices:
        each.release()
    return raw


def _columns(position: int, header: BatchHeader) -> dict[str, Any]:
    return {
        "position": position,
        "size": header.size_bytes,
        "magic": header.magic,
        "base": header.base_offset,
        "last": header.last_offset,
        "count": header.record_count,
        "codec": CODEC_NAMES[header.codec],
        "attributes": header.attributes,
        "leader_epoch": header.partition_leader_epoch,
        "base_ts": None if header.has_delete_horizon else header.base_timestamp,
        "max_ts": header.max_timestamp,
        "pid": header.producer_id,
        "epoch": header.producer_epoch,
        "seq": header.base_sequence,
        "delete_horizon": header.base_timestamp if header.has_delete_horizon else None,
        "crc": header.crc,
    }


def _assert_batch(found: dict[str, Any], wanted: dict[str, Any]) -> None:
    skipped = _LEGACY_UNKNOWN if found["magic"] < 2 else set()
    if wanted["delete_horizon"] is not None:
        skipped = skipped | {"base_ts"}  # there the expectation is the first record's time
    for column, value in wanted.items():
        if column not in skipped:
            assert found[column] == value, (column, found, wanted)


def _producer_rows(producers: Any) -> list[list[int]]:
    rows = []
    for producer_id, producer in producers:
        last = producer.batches[-1] if producer.batches else None
        rows.append(
            [
                producer_id,
                producer.epoch,
                producer.last_sequence,
                last.last_offset if last else -1,
                last.offset_delta if last else 0,
                producer.timestamp,
                producer.coordinator_epoch,
                producer.transaction_offset,
            ]
        )
    return rows


def _expanded(rows: list[Any]) -> Iterator[Record]:
    """The expected records: `[offset, time, key, value, headers]`, or `["same", first, last, ...]`
    for a run of records that differ in nothing but their offset."""
    for row in rows:
        offsets: range
        if row[0] == "same":
            _, first, last, *rest = row
            offsets = range(first, last + 1)
        else:
            first, *rest = row
            offsets = range(first, first + 1)
        timestamp, key, value, *headers = rest
        pairs = tuple((name, _bytes(content)) for name, content in headers[0]) if headers else ()
        for offset in offsets:
            yield Record(offset, timestamp, _bytes(key), _bytes(value), pairs)


def _bytes(described: Any) -> bytes | None:
    if isinstance(described, dict):
        if "hex" in described:
            return bytes.fromhex(described["hex"])
        if "repeat" in described:
            return str(described["repeat"]).encode() * int(described["times"])
        big = b"0123456789abcdef" * int(described["len"] // 16)
        assert hashlib.sha256(big).hexdigest() == described["sha256"]
        return big
    return None if described is None else str(described).encode()


def _ranges(offsets: Iterator[int]) -> list[list[int]]:
    ranges: list[list[int]] = []
    for offset in offsets:
        if ranges and ranges[-1][1] == offset - 1:
            ranges[-1][1] = offset
        else:
            ranges.append([offset, offset])
    return ranges
