"""ST-9, UX-4: `barnabas dump` on files made here. (On Kafka's own: integration/test_cli_dump.)"""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from struct import pack

import pytest

from barnabas.cli.dump import log as dump_log
from barnabas.cli.dump.log import LogWalk, batch_line
from barnabas.cli.main import main
from barnabas.counted import counted
from barnabas.records.batch import LOG_APPEND_TIME, BatchHeader, read_header, seal
from barnabas.records.control_records import ABORT, Marker, build_marker
from barnabas.records.record import BatchBuilder
from barnabas.storage.producers import Producer, Producers
from barnabas.storage.snapshot import encode_snapshot

T0 = 1700000000000
BASE = "0" * 20


def batch(
    offset: int,
    values: Sequence[bytes | None] = (b"v",),
    *,
    epoch: int = 0,
    producer: tuple[int, int, int] = (-1, -1, -1),
    timestamp: int = T0,
) -> bytes:
    builder = BatchBuilder(0, *producer)
    for value in values:
        builder.append(timestamp, b"k", value, [("h", b"1")])
    raw = bytearray(builder.build(offset))
    raw[12:16] = pack(">i", epoch)
    return bytes(raw)


def write(directory: Path, *batches: bytes, name: str = BASE) -> Path:
    path = directory / f"{name}.log"
    path.write_bytes(b"".join(batches))
    return path


def test_a_batch_and_its_records_are_kafkas_lines(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, batch(0, [b"v", None], producer=(7, 0, 2**31 - 1)))
    crc = read_header(path.read_bytes()).crc
    assert main(["dump", "--records", str(path)]) == 0
    assert capfd.readouterr().out.splitlines() == [
        f"Dumping {path}",
        "Log starting offset: 0",
        "baseOffset: 0 lastOffset: 1 count: 2 baseSequence: 2147483647 lastSequence: 0 "
        "producerId: 7 producerEpoch: 0 partitionLeaderEpoch: 0 isTransactional: false "
        "isControl: false deleteHorizonMs: OptionalLong.empty position: 0 "
        f"CreateTime: {T0} size: 86 magic: 2 compresscodec: none crc: {crc} isvalid: true",
        f"| offset: 0 CreateTime: {T0} keySize: 1 valueSize: 1 sequence: 2147483647 "
        "headerKeys: [h] key: k payload: v",
        f"| offset: 1 CreateTime: {T0} keySize: 1 valueSize: -1 sequence: 0 headerKeys: [h] key: k",
    ]


@pytest.mark.parametrize(
    ("kind", "text"),
    [(ABORT, "endTxnMarker: ABORT coordinatorEpoch: 3"), (2, "controlType: LEADER_CHANGE(2)")],
)
def test_control_records_say_what_they_are(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], kind: int, text: str
) -> None:
    path = write(tmp_path, build_marker(Marker(0, T0, kind, 3), 7, 0))
    assert main(["dump", "--deep-iteration", str(path)]) == 0
    assert capfd.readouterr().out.splitlines()[-1].endswith(f"headerKeys: [] {text}")


def test_what_is_damaged_does_not_hide_what_is_not(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A wrong checksum, unreadable records, a torn end: the rest is printed all the same."""
    damaged = bytearray(batch(1, [b"x" * 20]))
    damaged[61] = 0xFF  # the first record's length
    path = write(tmp_path, batch(0), bytes(damaged), batch(2), batch(3)[:-1])
    assert main(["dump", "--records", str(path)]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert [line.rpartition(" ")[2] for line in lines if line.startswith("base")] == [
        "true",
        "false",
        "true",
    ]
    assert any(line.startswith(f"| position: {len(batch(0))} unreadable: ") for line in lines)
    assert lines[-1] == f"Found {len(batch(3)) - 1} invalid bytes at the end of {path.name}"


def test_a_batch_of_any_size_is_checked_in_little_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, batch(0, [b"x" * 3000]), batch(1))
    monkeypatch.setattr(dump_log, "MAX_BATCH_BYTES", 1000)
    monkeypatch.setattr(dump_log, "_PIECE_BYTES", 100)
    with path.open("rb") as file:
        first, second = LogWalk(file)
    assert (first.is_valid, first.data, second.is_valid) == (True, None, True)
    assert main(["dump", "--records", str(path)]) == 0
    assert "its records are not shown" in capfd.readouterr().out


def test_log_append_time_and_an_unknown_codec_have_their_words(tmp_path: Path) -> None:
    header = read_header(batch(0))._replace(attributes=LOG_APPEND_TIME | 6, max_timestamp=9)
    with write(tmp_path, seal(header, b"")).open("rb") as file:
        (found,) = LogWalk(file)
    assert " LogAppendTime: 9 " in batch_line(found)
    assert " compresscodec: 6 " in batch_line(found)


def test_index_entries_are_kafkas_lines(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Zeros behind the entries are no entries."""
    name = f"{100:020}"
    (tmp_path / f"{name}.index").write_bytes(pack(">ii", 41, 4213) + bytes(80))
    (tmp_path / f"{name}.timeindex").write_bytes(pack(">qi", T0 + 123, 41) + bytes(12))
    (tmp_path / f"{name}.txnindex").write_bytes(pack(">hqqqq", 0, 4000, 100, 149, 150))
    assert main(["dump", str(tmp_path)]) == 0
    assert capfd.readouterr().out.splitlines() == [
        f"Dumping {tmp_path}/{name}.index",
        "offset: 141 position: 4213",
        f"Dumping {tmp_path}/{name}.timeindex",
        f"timestamp: {T0 + 123} offset: 141",
        f"Dumping {tmp_path}/{name}.txnindex",
        "version: 0 producerId: 4000 firstOffset: 100 lastOffset: 149 lastStableOffset: 150",
    ]


def test_a_producer_without_a_batch_has_half_a_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """After an abort by fencing nothing is known of its sequence; Kafka's line ends in a blank."""
    producers = Producers()
    producer = Producer(1)
    producer.timestamp, producer.coordinator_epoch, producer.transaction_offset = T0, 2, 5
    producers.take_over({4000: producer})
    path = tmp_path / f"{BASE}.snapshot"
    path.write_bytes(encode_snapshot(producers))
    assert main(["dump", str(path)]) == 0
    assert capfd.readouterr().out.splitlines()[1] == (
        "producerId: 4000 producerEpoch: 1 coordinatorEpoch: 2 "
        f"currentTxnFirstOffset: OptionalLong[5] lastTimestamp: {T0} "
    )


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("x.log", b"", "its name is not an offset"),
        (f"{BASE}.log", bytes(100), "no batch begins at position 0"),
        (f"{BASE}.snapshot", b"\0\1", "a producer snapshot is truncated"),
        (f"{BASE}.txnindex", pack(">hqqqq", 9, 0, 0, 0, 0), "unknown version 9"),
        ("replication-offset-checkpoint", b"0\n1\n", "declares '1' entries but has 0"),
        ("leader-epoch-checkpoint", b"0\n1\none 2\n", "malformed line 'one 2'"),
        ("partition.metadata", b"version: 0\ntopic_id: short", "malformed topic id"),
        ("meta.properties", b"\xff\xfe", "not text"),
        ("photo.jpg", b"", "not a file that can be dumped"),
    ],
)
def test_a_file_that_is_none_is_one_line_and_exit_1(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], name: str, content: bytes, problem: str
) -> None:
    """UX-4: what is wrong with which file; and the next one is dumped all the same."""
    path = tmp_path / name
    path.write_bytes(content)
    (tmp_path / "other").mkdir()
    good = write(tmp_path / "other", batch(0))
    assert main(["dump", str(path), str(good)]) == 1
    printed = capfd.readouterr()
    assert printed.err.count("\n") == 1 and "Traceback" not in printed.err
    assert str(path) in printed.err and problem in printed.err
    assert printed.out.endswith("isvalid: true\n")


def test_a_file_that_is_not_there(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["dump", str(tmp_path / "00.log")]) == 1
    stderr = capfd.readouterr().err
    assert stderr == f"barnabas dump: {tmp_path}/00.log: no such file or directory\n"


def test_a_wrong_command_line_is_one_line_and_exit_2(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["dump"]) == 2
    assert main(["dump", "--raw", "x.log"]) == 2
    first, second = capfd.readouterr().err.splitlines()
    assert "name a file or a directory" in first and "--raw needs --records" in second


def test_a_terminal_is_not_given_what_a_record_would_have_it_do(tmp_path: Path) -> None:
    """UX-4: a record may hold an escape sequence; a pipe gets it as it is."""
    path = write(tmp_path, batch(0, [b"\x1b[2Jbell\a\n"]))
    ours, theirs = pty.openpty()
    dump = [sys.executable, "-m", "barnabas.cli.main", "dump", "--records", str(path)]
    process = subprocess.Popen(dump, stdin=subprocess.DEVNULL, stdout=theirs)
    os.close(theirs)
    shown = b""
    try:
        while piece := os.read(ours, 4096):
            shown += piece
    except OSError:
        pass  # as Linux says that the other side has closed
    os.close(ours)
    assert process.wait(120) == 0
    assert rb"payload: \x1b[2Jbell\x07\n" in shown
    assert b"\a" not in shown and b"\x1b[2J" not in shown


# ---- --verify ----


def verified(
    capfd: pytest.CaptureFixture[str], *paths: Path, more: Sequence[str] = ()
) -> list[str]:
    code = main(["dump", "--verify", *more, *map(str, paths)])
    printed = capfd.readouterr()
    findings = printed.out.splitlines()
    assert code == (1 if findings else 0)
    assert (
        printed.err == f"Verified {counted(len(paths), 'file')}, problems found: {len(findings)}\n"
    )
    return [finding.rpartition(f"{paths[0].parent}/")[2] for finding in findings]


def test_a_log_that_goes_back_is_found(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    sound = write(tmp_path, batch(5, epoch=1), batch(9, epoch=2), name=f"{5:020}")
    assert verified(capfd, sound) == []
    size = len(batch(0))
    path = write(tmp_path, batch(3, epoch=2), batch(6, epoch=1), batch(6, epoch=2), name=f"{5:020}")
    assert verified(capfd, path) == [
        f"{path.name}: position 0: the batch at offset 3 does not come after offset 4",
        f"{path.name}: position {size}: the batch at offset 6 has leader epoch 1, after a batch "
        "with 2",
        f"{path.name}: position {2 * size}: the batch at offset 6 does not come after offset 6",
    ]


def test_with_records_their_offsets_are_looked_at_too(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    header: BatchHeader = read_header(batch(0))
    body = batch(0)[61:]
    twice = seal(header._replace(record_count=2, last_offset_delta=1), body + body)
    path = write(tmp_path, twice)
    assert verified(capfd, path) == []
    (finding,) = verified(capfd, path, more=["--records"])
    assert finding.endswith("the batch at offset 0: its record at offset 0 is out of order")


def test_indexes_are_held_against_the_log(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    size = len(batch(0))
    write(tmp_path, *(batch(n, timestamp=T0 + n) for n in range(4)))
    index, times = tmp_path / f"{BASE}.index", tmp_path / f"{BASE}.timeindex"
    # An entry stands for all batches of one append: it names the last offset, the first position.
    index.write_bytes(pack(">iiii", 2, size, 3, 3 * size))
    times.write_bytes(pack(">qiqi", T0 + 1, 1, T0 + 3, 3))
    assert verified(capfd, index) == verified(capfd, times) == []
    index.write_bytes(pack(">iiiiii", 1, size, 2, size + 1, 9, 3 * size) + b"\0")
    assert verified(capfd, index) == [
        f"{index.name}: 25 bytes are not a whole number of entries of 8 bytes",
        f"{index.name}: the entry offset 2 position {size + 1}: no batch begins at that position",
        f"{index.name}: the entry offset 9 position {3 * size}: no batch from that position on "
        "ends with "
        "that offset",
    ]
    index.write_bytes(pack(">iiii", 2, size, 1, 2 * size))
    assert verified(capfd, index) == [
        f"{index.name}: the entry offset 1 position {2 * size} does not come after offset 2 "
        f"position {size}"
    ]
    times.write_bytes(pack(">qiqi", T0 + 2, 1, T0 + 3, 8))
    assert verified(capfd, times) == [
        f"{times.name}: the entry timestamp {T0 + 2} offset 1: the largest timestamp up to that "
        f"offset is {T0 + 1}",
        f"{times.name}: the entry timestamp {T0 + 3} offset 8: no batch ends with that offset",
    ]
    write(tmp_path, batch(0, [b"v", b"v"]))
    index.write_bytes(bytes(4096))  # preallocated, and nothing in it yet
    assert verified(capfd, index) == []


def test_an_aborted_transaction_needs_its_marker(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, batch(0), build_marker(Marker(1, T0, ABORT, 0), 7, 0))
    path = tmp_path / f"{BASE}.txnindex"
    path.write_bytes(pack(">hqqqq", 0, 7, 0, 1, 2))
    assert verified(capfd, path) == []
    path.write_bytes(pack(">hqqqq", 0, 8, 0, 1, 2))
    (finding,) = verified(capfd, path)
    assert finding.endswith("the transaction 0 to 1 has no ABORT marker of producer 8")


def test_leader_epochs_rise(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "leader-epoch-checkpoint"
    path.write_text("0\n2\n0 0\n4 22\n")
    assert verified(capfd, path) == []
    path.write_text("0\n2\n4 22\n4 30\n")
    (finding,) = verified(capfd, path)
    assert finding.endswith("epoch 4 at offset 30 does not come after epoch 4 at 22")


def test_the_flags_of_kafkas_tool_are_taken(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """UX-5: `DumpLogSegments --files F[,F] --print-data-log` = `dump F [F] --records`."""
    first, second = write(tmp_path, batch(0)), write(tmp_path, batch(5), name=f"{5:020d}")
    assert main(["dump", "--records", str(first), str(second)]) == 0
    expected = capfd.readouterr().out
    assert "payload: v" in expected
    for words in (
        ["--files", f"{first},{second}"],
        ["--files", str(first), "--files", str(second)],
    ):
        assert main(["dump", *words, "--print-data-log"]) == 0
        assert capfd.readouterr().out == expected


@pytest.mark.parametrize("words", [["--records"], ["--verify"], []])
def test_a_reader_that_leaves_is_no_error(tmp_path: Path, words: list[str]) -> None:
    """UX-4: `dump | head -1`, whatever is left to say of however many files."""
    for number in range(5):
        # Each batch is out of order, so that --verify has something to say as well.
        write(tmp_path, *[batch(0)] * 4000, name=f"{number:020d}")
    command = [sys.executable, "-m", "barnabas.cli.main", "dump", *words, str(tmp_path)]
    dumping = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert dumping.stdout is not None and dumping.stderr is not None
    with dumping:
        assert dumping.stdout.readline()
        dumping.stdout.close()
        assert dumping.stderr.read() == b""
    assert dumping.returncode == 0
