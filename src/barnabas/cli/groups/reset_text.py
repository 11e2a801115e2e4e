"""Formats a reset plan as text, or as the file that Kafka's tool writes. Pure.

orders,0,3              a line for each partition: topic, partition, offset
live,orders,0,3         the same for several groups
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from io import StringIO
from typing import Any

from barnabas.cli.groups.reset_plan import BadReset, Move
from barnabas.types import TopicPartition

_OFFSET_MAX = 2**63 - 1
_PARTITION_MAX = 2**31 - 1

Offsets = dict[TopicPartition, int]


def plan_text(moves: Iterable[Move]) -> str:
    """Return the table that Kafka prints, with a line for each partition."""
    lines = [("GROUP", "TOPIC", "PARTITION", "NEW-OFFSET")]
    for move in moves:
        topic, partition = move.partition
        lines.append((move.group_id, topic, str(partition), str(move.after)))
    return "\n" + "".join(
        f"{group:<30} {topic:<30} {partition:<10} {offset}\n"
        for group, topic, partition, offset in lines
    )


def plan_values(moves: Iterable[Move], executed: bool) -> dict[str, Any]:
    """Return the plan as values for JSON, including the previous offsets."""
    return {
        "executed": executed,
        "offsets": [
            {
                "group": move.group_id,
                **move.partition._asdict(),
                "offset": move.before,
                "new_offset": move.after,
            }
            for move in moves
        ],
    }


def plan_file(moves: Sequence[Move]) -> str:
    """Return the file for `--from-file`, with a group column if there are several groups."""
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    # Kafka writes the group only if there are several, but reads both forms.
    with_group = len({move.group_id for move in moves}) > 1
    for move in moves:
        topic, partition = move.partition
        writer.writerow(([move.group_id] if with_group else []) + [topic, partition, move.after])
    return out.getvalue()


def read_plan(text: str, group_ids: Sequence[str]) -> dict[str, Offsets]:
    """Return the offsets of each of these groups. Raises BadReset, quoting the line.

    Lines of other groups are ignored. A line without a group belongs to the only group.
    """
    found: dict[str, Offsets] = {group_id: {} for group_id in group_ids}
    reader = csv.reader(StringIO(text), skipinitialspace=True)
    try:
        for cells in reader:
            if not cells:
                continue
            group_id, name, offset = _line(cells, group_ids, reader.line_num)
            # A file for several groups may be used to reset only some of them.
            if group_id in found:
                found[group_id][name] = offset
    except csv.Error as error:
        raise BadReset(f"line {reader.line_num}: {error}") from error
    for group_id, offsets in found.items():
        # If the file has no line for a group, nothing would change, but the reset would seem to
        # have worked.
        if not offsets:
            raise BadReset(f"the file has no offset for group {group_id}")
    return found


def _line(
    cells: list[str], group_ids: Sequence[str], number: int
) -> tuple[str, TopicPartition, int]:
    if len(cells) not in (3, 4):
        raise BadReset(f"line {number} has {len(cells)} columns, not TOPIC,PARTITION,OFFSET")
    if len(cells) == 3 and len(group_ids) != 1:
        raise BadReset(f"line {number} does not name its group")
    *group, topic, partition, offset = (cell.strip() for cell in cells)
    try:
        name = TopicPartition(topic, _number(partition, _PARTITION_MAX))
        return (group[0] if group else group_ids[0]), name, _number(offset, _OFFSET_MAX)
    except ValueError as error:
        raise BadReset(f"line {number}: {error}") from error


def _number(text: str, most: int) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 20 and int(text) <= most):
        raise ValueError(f"{text!r} is not a number from 0 to {most}")
    return int(text)
