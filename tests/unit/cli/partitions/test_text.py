"""What `partitions watch` prints, as lines, as data and as a table."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.cells import cell_len
from rich.console import Console, ConsoleDimensions

from barnabas.cli.partitions.table import screen
from barnabas.cli.partitions.text import change_line, row_lines, row_values
from barnabas.cli.partitions.watch import Change, PartitionRow, ReplicaRow
from barnabas.client.admin.replica_admin import ReplicaEnd
from barnabas.types import TopicPartition

LEADER = ReplicaRow(1, True, True, True, ReplicaEnd(100, 4, 90), 0, 0)
LATE = ReplicaRow(2, False, False, True, ReplicaEnd(90, 3, 80), 10, 1540)
GONE = ReplicaRow(3, False, False, False, None, None, 61_000)
ROW = PartitionRow(TopicPartition("t", 0), 1, 4, (1,), 90, (LEADER, LATE, GONE))
LEADERLESS = PartitionRow(TopicPartition("u", 1), -1, 5, (3,), None, (GONE,))
WELL = [
    PartitionRow(TopicPartition("well", number), 1, 0, (1,), 0, (LEADER,)) for number in range(50)
]
CHANGE = Change(1_795_224_580_123, ROW.name, "leader broker 3 -> broker 1")


def drawn(
    rows: list[PartitionRow],
    changes: list[Change],
    size: tuple[int, int],
    silent_since_ms: int | None = None,
) -> list[str]:
    """The lines of a terminal of that width and height."""
    file = StringIO()
    all_of_it = screen(rows, changes, ConsoleDimensions(*size), silent_since_ms)
    Console(file=file, width=size[0], highlight=False).print(all_of_it)
    return file.getvalue().splitlines()


def shown(
    rows: list[PartitionRow], changes: list[Change], height: int, silent_since_ms: int | None = None
) -> list[str]:
    lines = drawn(rows, changes, (120, height), silent_since_ms)
    return [" ".join(line.split()) for line in lines]


def test_a_line_for_each_partition_and_each_replica() -> None:
    assert list(row_lines([ROW, LEADERLESS])) == [
        "Topic: t\tPartition: 0\tLeader: 1\tLeaderEpoch: 4\tIsr: 1\tHighWatermark: 90",
        "\tBroker: 1\tLogEndOffset: 100\tLag: 0\tLagSeconds: 0.0\tLastEpoch: 4\tleader",
        "\tBroker: 2\tLogEndOffset: 90\tLag: 10\tLagSeconds: 1.5\tLastEpoch: 3\tbehind",
        "\tBroker: 3\tLogEndOffset: ?\tLag: ?\tLagSeconds: 61.0\tLastEpoch: ?\tgone",
        "Topic: u\tPartition: 1\tLeader: none\tLeaderEpoch: 5\tIsr: 3\tHighWatermark: ?",
        "\tBroker: 3\tLogEndOffset: ?\tLag: ?\tLagSeconds: 61.0\tLastEpoch: ?\tgone",
    ]


def test_a_change_has_its_time() -> None:
    assert change_line(CHANGE) == "2026-11-21T01:29:40.123Z t-0: leader broker 3 -> broker 1"


def test_the_same_as_data() -> None:
    first, second = row_values([ROW, LEADERLESS])
    assert (first["leader"], first["high_watermark"], first["isr"]) == (1, 90, [1])
    assert first["replicas"][1] == {
        "broker": 2,
        "live": True,
        "in_sync": False,
        "log_end_offset": 90,
        "last_epoch": 3,
        "lag_records": 10,
        "lag_seconds": 1.54,
    }
    assert (second["leader"], second["high_watermark"]) == (None, None)
    assert second["replicas"][0]["log_end_offset"] is None


def test_a_table_with_the_news_below_the_newest_first() -> None:
    older = CHANGE._replace(at_ms=CHANGE.at_ms - 1000, text="broker 3 left the ISR")
    lines = shown([ROW, LEADERLESS], [older, CHANGE], 40)
    assert lines[0].startswith("partition leader epoch in sync high watermark broker log end lag")
    assert lines[1:5] == [
        "t-0 1 4 1 90 1 100 0 0.0 4 leader",
        "2 90 10 1.5 3 behind",
        "3 ? ? 61.0 ? gone",
        "u-1 none 5 3 ? 3 ? ? 61.0 ? gone",
    ]
    assert lines[5:] == [
        "last changes:",
        "01:29:40 t-0 leader broker 3 -> broker 1",
        "01:29:39 t-0 broker 3 left the ISR",
    ]


def test_where_there_is_no_room_what_is_not_well_is_shown() -> None:
    last = LEADERLESS._replace(name=TopicPartition("zz", 1))
    lines = shown([ROW, *WELL, last], [CHANGE] * 20, 24)
    assert len(lines) <= 24
    assert any(line.startswith("t-0 ") for line in lines)
    assert any(line.startswith("zz-1 ") for line in lines)
    (rest,) = [line for line in lines if line.startswith("not shown: ")]
    well = sum(line.startswith("well-") for line in lines)
    assert well > 0
    assert rest == f"not shown: {50 - well} partitions, all well"


def test_where_there_is_no_room_a_healthy_partition_takes_one_line() -> None:
    """80 columns, 24 lines; what is hidden is named."""
    follower = LEADER._replace(broker_id=2, is_leader=False, lag_records=7, lag_ms=300)
    well = [
        PartitionRow(TopicPartition("orders-of-customers", n), 1, 4, (1, 2), 90, (LEADER, follower))
        for n in range(40)
    ]
    lines = [" ".join(line.split()) for line in drawn([*well, ROW], [CHANGE] * 20, (80, 24))]
    assert len(lines) == 23
    assert lines[1] == "orders-of-customers-0 1 1,2 all 100 7 0.3 in sync"
    assert lines[-7:-4] == [
        "3 ? ? 61.0 gone",
        "not shown: 27 partitions, all well; epoch, high watermark, last epoch",
        "last changes:",
    ]
    ill = [ROW._replace(name=TopicPartition("ill", n)) for n in range(20)]
    (hidden,) = [line for line in drawn([*well, *ill], [], (80, 24)) if "not shown" in line]
    assert hidden.startswith("not shown: 53 partitions, 13 of them not well; ")


def test_nothing_is_shown_as_nothing() -> None:
    assert shown([], [], 24)[-1] == "no partitions"


def test_a_table_that_is_old_says_so_above_everything() -> None:
    """UX-4: the last look shows leaders that may be dead."""
    lines = shown(WELL, [CHANGE] * 20, 24, CHANGE.at_ms)
    assert lines[0] == "no broker has answered since 01:29:40: this is the state at that time"
    assert lines[1].startswith("partition leader ")
    assert len(lines) <= 24


LONG = PartitionRow(
    TopicPartition("orders-of-all-customers-of-the-whole-wide-world", 12),
    1,
    4,
    (1,),
    10**12,
    (LEADER._replace(end=ReplicaEnd(10**12, 4, 10**12)), LATE, GONE),
)


@pytest.mark.parametrize("width", [60, 80, 81, 100, 101, 102, 120, 200])
def test_no_line_is_broken_however_narrow_the_terminal_is(width: int) -> None:
    """Else there were more lines than were counted, and the table would not stay in its place."""
    change = CHANGE._replace(name=LONG.name, text="ISR 1,2,3 -> 1 (broker 3 is not registered)")
    lines = drawn([ROW, LONG, LEADERLESS], [change, CHANGE], (width, 24), CHANGE.at_ms)
    hides = any(line.startswith("not shown: ") for line in lines)
    assert hides == (width < 200)
    assert len(lines) == 1 + 1 + 3 + 3 + 1 + hides + 1 + 2
    assert max(map(cell_len, lines)) <= width


def test_a_usual_terminal_shows_all_that_matters() -> None:
    """80 columns: how far a replica is, and the partition's number, whatever its topic's name."""
    lines = [" ".join(line.split()) for line in drawn([ROW, LONG], [], (80, 24))]
    assert lines[0].endswith("in sync broker log end lag seconds")
    assert lines[1] == "t-0 1 1 1 100 0 0.0 leader"
    assert lines[2] == "2 90 10 1.5 behind"
    assert lines[4].endswith("…-12 1 1 1 1000000000000 0 0.0 leader")
    lines = [" ".join(line.split()) for line in drawn([ROW], [], (80, 24))]
    assert lines[1] == "t-0 1 4 1 1 100 0 0.0 leader", "of short names the epoch is shown, too"
