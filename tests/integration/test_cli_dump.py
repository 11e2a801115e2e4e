"""ST-9: `barnabas dump` on what a real Kafka wrote, beside Kafka's own DumpLogSegments."""

from __future__ import annotations

import re
import tarfile
from pathlib import Path

import pytest

from barnabas.cli.main import main
from tests.kit.processes.dump_tool import KINDS, Tool, ordered

UNREADABLE = {
    # Kafka ends with an exception at these and we go on, so its lines are the first of ours.
    "log": 1,  # zeros behind the last batch
    "index": 20,  # 19 preallocated and without a log that has anything, one without any log
    "timeindex": 1,  # the offset index beside it is missing
}

pytestmark = pytest.mark.foreign


@pytest.fixture(scope="module")
def logs(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every log directory of the fixtures, by the name of its archive."""
    directory = tmp_path_factory.mktemp("logs")
    archives = sorted((shared / "fixtures" / "kafka-3.9").glob("*/*.tar.gz"))
    assert archives
    for archive in archives:
        target = directory / f"{archive.parent.name}-{archive.name.removesuffix('.tar.gz')}"
        with tarfile.open(archive) as packed:
            packed.extractall(target)  # our own archives
    return directory


@pytest.fixture(scope="module")
def files(logs: Path) -> list[Path]:
    return sorted(path for path in logs.rglob("*") if path.suffix in KINDS)


@pytest.fixture(scope="module")
def tool(tmp_path_factory: pytest.TempPathFactory) -> Tool:
    return Tool(tmp_path_factory.mktemp("tool"))


def _compare(
    tool: Tool,
    option: str,
    files: list[Path],
    ours: list[str],
    capture: pytest.CaptureFixture[bytes],
) -> dict[str, int]:
    """Files whose lines are only the beginning of ours, by kind; all others have the same."""
    cut: dict[str, int] = {}
    for path, theirs in zip(files, tool.print(option, files), strict=True):
        capture.readouterr()
        main(["dump", *ours, str(path)])
        printed = capture.readouterr().out
        if printed != theirs and ordered(printed) != ordered(theirs):
            assert printed.startswith(theirs), path
            cut[path.suffix[1:]] = cut.get(path.suffix[1:], 0) + 1
    return cut


def test_st_9_every_file_has_the_lines_of_kafkas_tool(
    tool: Tool, files: list[Path], capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    cut = _compare(tool, "", files, [], capfdbinary)
    assert all(count <= UNREADABLE[kind] for kind, count in cut.items()), cut
    counts = {kind: sum(path.suffix == kind for path in files) for kind in KINDS}
    assert min(counts.values()) > 20
    with capfdbinary.disabled():
        print(f"\n{len(files)} files as Kafka's DumpLogSegments prints them: {counts}")


@pytest.mark.parametrize(
    ("option", "ours", "topic"),
    [
        ("--print-data-log", ["--records", "--raw"], ""),
        ("--deep-iteration", ["--deep-iteration"], ""),
        ("--offsets-decoder", ["--records"], "__consumer_offsets-"),
        ("--transaction-log-decoder", ["--records"], "__transaction_state-"),
    ],
)
def test_st_9_every_record_has_the_line_of_kafkas_tool(
    tool: Tool,
    files: list[Path],
    option: str,
    ours: list[str],
    topic: str,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    """Keys, values, header names; the internal topics' records decoded."""
    logs = [path for path in files if path.suffix == ".log" and path.parent.name.startswith(topic)]
    assert len(logs) > 20
    cut = _compare(tool, option, logs, ours, capfdbinary)
    assert all(count <= UNREADABLE[kind] for kind, count in cut.items()), cut
    with capfdbinary.disabled():
        print(f"\n{len(logs)} logs as DumpLogSegments {option} prints them")


def test_st_9_nothing_is_found_in_what_kafka_left_whole(
    logs: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Every partition, every record, every checkpoint: no finding where there is no damage."""
    whole = [path for path in logs.iterdir() if not path.name.startswith("crash-")]
    directories = [each for path in [*whole, logs / "crash-base"] for each in path.glob("logs/**")]
    words = [str(path) for path in directories if path.is_dir()]
    assert main(["dump", "--verify", "--records", *words]) == 0
    captured = capfd.readouterr()
    assert captured.out == ""
    found = re.fullmatch(r"Verified ([\d,]+) files, problems found: 0\n", captured.err)
    assert found is not None and int(found[1].replace(",", "")) > 1500
    with capfd.disabled():
        print(f"\n{captured.err.strip()}")


@pytest.mark.parametrize(
    ("archive", "findings"),
    [
        (
            "crash-torn",
            [
                "idem-0/00000000000000000024.log: position 0: 10 bytes are an incomplete batch",
                "one-0/00000000000000000000.log: position 409: 61 bytes are an incomplete batch",
                "plain-0/00000000000000000060.log: no batch begins at position 996: a batch cannot "
                "have 0 bytes",
                "txn-0/00000000000000000019.log: position 715: 70 bytes are an incomplete batch",
                "txn-0/00000000000000000019.txnindex: the transaction 26 to 28 has no ABORT marker "
                "of producer 1",
            ],
        ),
        (
            "crash-bitflip",
            [
                "idem-0/00000000000000000000.log: position 243: the batch at offset 3 fails its "
                "checksum",
                "one-0/00000000000000000000.log: position 261: 274 bytes are an incomplete batch",
                "plain-0/00000000000000000060.log: position 249: the batch at offset 63 fails its "
                "checksum",
                "txn-0/00000000000000000019.log: position 78: the batch at offset 20 fails its "
                "checksum",
            ],
        ),
        (
            "crash-no-recovery-point",
            [
                "idem-0/00000000000000000000.log: position 486: the batch at offset 6 has leader "
                "epoch 0, after a batch with 1",
                "idem-0/00000000000000000000.log: position 729: the batch at offset 9 has leader "
                "epoch 0, after a batch with 1",
                "plain-0/00000000000000000024.log: position 249: the batch at offset 27 fails its "
                "checksum",
            ],
        ),
        (
            "crash-leftovers",
            [
                "plain-0/00000000000000000099.index: its 00000000000000000099.log does not exist",
                "txn-0/00000000000000000019.snapshot: a producer snapshot fails its checksum",
            ],
        ),
    ],
)
def test_st_9_every_damage_is_found_and_named(
    logs: Path, archive: str, findings: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    """The damage that was done to the fixtures on purpose, a line each; exit 1."""
    directory = logs / archive / "logs"
    partitions = sorted(str(path) for path in directory.iterdir() if path.is_dir())
    assert main(["dump", "--verify", "--records", *partitions]) == 1
    captured = capfd.readouterr()
    assert captured.out.replace(f"{directory}/", "").splitlines() == findings
    assert captured.err.endswith(f", problems found: {len(findings)}\n")


def test_the_small_files_of_a_directory(logs: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Checkpoints, `meta.properties`, the clean marker, several at once."""
    directory = logs / "single-logs" / "logs"
    assert main(["dump", str(directory), str(directory / "epochs-0")]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert f"Dumping {directory}/meta.properties" in lines
    assert "topic: delrec-segs partition: 0 offset: 17" in lines  # its log start
    assert "broker.id: 0" in lines
    assert '{"version":0,"brokerEpoch":-1}' in lines
    epochs = lines[lines.index(f"Dumping {directory}/epochs-0/leader-epoch-checkpoint") + 1 :][:3]
    assert epochs == [
        "epoch: 0 startOffset: 0",
        "epoch: 4 startOffset: 22",
        "epoch: 6 startOffset: 25",
    ]
    assert any(re.fullmatch(r"topicId: [\w-]{22}", line) for line in lines)
