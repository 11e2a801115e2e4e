"""Formats the output of `groups list` and `groups describe`, in Kafka 3.9's columns or as JSON.
Pure.

    GROUP           TOPIC           PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG             ...
    live            orders          0          4               10              6               ...

Each table starts with an empty line and its heading. Two things are added to the output of Kafka's
tool: the lag of a partition without a committed offset, and the topics in a member's assignment
(`bills(0), orders(0,1)` instead of `(0), (0,1)`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any, Final

from barnabas.cli.groups.instants import instant_text
from barnabas.cli.groups.rows import EMPTY, DescribedGroup, GroupRow
from barnabas.client.admin.group_admin import GroupListing, MemberDescription, RebalanceEvent
from barnabas.client.consumer.committed import OffsetAndMetadata
from barnabas.types import TopicPartition

NOTHING: Final = "-"

_OFFSET_COLUMNS = (
    ("GROUP", 15),
    ("TOPIC", 15),
    ("PARTITION", 10),
    ("CURRENT-OFFSET", 15),
    ("LOG-END-OFFSET", 15),
    ("LAG", 15),
    ("CONSUMER-ID", 15),
    ("HOST", 15),
    ("CLIENT-ID", 0),
)
_STATE_COLUMNS = (
    ("GROUP", 25),
    ("COORDINATOR (ID)", 25),
    ("ASSIGNMENT-STRATEGY", 20),
    ("STATE", 15),
    ("#MEMBERS", 0),
)


def list_text(listings: Iterable[GroupListing], *, with_type: bool, with_state: bool) -> str:
    """Return the names, one per line, or a table if the type or the state is requested."""
    if not (with_type or with_state):
        return "".join(f"{listing.group_id}\n" for listing in listings)
    columns = [("GROUP", 25)]
    columns += [("TYPE", 20)] if with_type else []
    columns += [("STATE", 20)] if with_state else []
    cells = [
        [listing.group_id] + [_type(listing)] * with_type + [listing.state] * with_state
        for listing in listings
    ]
    return kafka_table(columns, cells)


def list_values(listings: Iterable[GroupListing]) -> list[dict[str, Any]]:
    return [
        {
            "group": listing.group_id,
            "state": listing.state,
            "type": _type(listing),
            "protocol_type": listing.protocol_type,
        }
        for listing in listings
    ]


def offsets_text(described: DescribedGroup) -> str:
    """Return the group's offset in each partition, or "" if there are none."""
    rows = [_offset_cells(described.group.group_id, row) for row in described.rows]
    return "\n" + kafka_table(_OFFSET_COLUMNS, rows) if rows else ""


def members_text(described: DescribedGroup, verbose: bool) -> str:
    """Return the members of the group. With `verbose`, include their partitions."""
    members = sorted(described.group.members)
    static = any(member.instance_id is not None for member in members)
    columns = [("GROUP", 15), ("CONSUMER-ID", 15)]
    # As in Kafka, the column is shown only if there is a static member (KIP-345).
    columns += [("GROUP-INSTANCE-ID", 17)] if static else []
    # Kafka adds a blank to the count, even if no column follows.
    columns += [("HOST", 15), ("CLIENT-ID", 15), ("#PARTITIONS", 15), ("ASSIGNMENT" * verbose, 0)]
    cells = [
        [described.group.group_id, member.member_id]
        + [member.instance_id or ""] * static
        + [member.host, member.client_id, str(len(member.partitions))]
        + [assignment_text(member.partitions) * verbose]
        for member in members
    ]
    return "\n" + kafka_table(columns, cells)


def state_text(described: DescribedGroup) -> str:
    """Return the group's coordinator and state."""
    group = described.group
    at = group.coordinator
    cells = [
        group.group_id,
        f"{at.host}:{at.port}  ({at.node_id})",
        group.assignor,
        group.state,
        str(len(group.members)),
    ]
    return "\n" + kafka_table(_STATE_COLUMNS, [cells])


def events_text(described: DescribedGroup) -> str:
    """Return the latest rebalances, one per line, oldest first."""
    lines = [event_line(event) for event in described.group.events]
    return "".join(f"{line}\n" for line in lines)


def event_line(event: RebalanceEvent) -> str:
    """Return a line with the time when a rebalance ended, and its result."""
    return f"{instant_text(event.ended_at_ms)} {event.story}"


def remark(described: DescribedGroup) -> str | None:
    """Return any remark that Kafka writes to standard error."""
    group = described.group
    if group.state == EMPTY:
        return f"Consumer group '{group.group_id}' has no active members."
    if group.state in ("PreparingRebalance", "CompletingRebalance"):
        return f"Warning: Consumer group '{group.group_id}' is rebalancing."
    return None


def describe_values(described: DescribedGroup, with_events: bool) -> dict[str, Any]:
    """Return everything that is known about a group as values for JSON."""
    group = described.group
    at = group.coordinator
    values: dict[str, Any] = {
        "group": group.group_id,
        "state": group.state,
        "protocol_type": group.protocol_type,
        "assignor": group.assignor,
        "coordinator": {"id": at.node_id, "host": at.host, "port": at.port},
        "lag": described.lag,
        "members": [_member_values(member) for member in sorted(group.members)],
        "partitions": [
            _row_values(row.partition, row, described.committed.get(row.partition))
            for row in described.rows
            if row.partition is not None
        ],
    }
    if with_events:
        values["events"] = [_event_values(event) for event in group.events]
    return values


def assignment_text(partitions: Iterable[TopicPartition]) -> str:
    """Return an assignment in the form `bills(0), orders(0,1)`, or `-` for none."""
    topics = [
        f"{topic}({','.join(str(name.partition) for name in own)})"
        for topic, own in groupby(partitions, key=lambda name: name.topic)
    ]
    return ", ".join(topics) or NOTHING


def shown(value: object) -> str:
    """Return a cell's text: the value, or `-` if there is none."""
    return NOTHING if value is None else str(value)


def _type(listing: GroupListing) -> str:
    """Return the type as Kafka's tool spells it. Brokers spell it in lower case, and older ones
    support only one type.
    """
    return (listing.group_type or "classic").capitalize()


def _offset_cells(group_id: str, row: GroupRow) -> list[str]:
    name, member = row.partition, row.member
    where = (None, None) if name is None else (name.topic, name.partition)
    who = (
        (None, None, None) if member is None else (member.member_id, member.host, member.client_id)
    )
    return [group_id, *map(shown, (*where, row.offset, row.end_offset, row.lag, *who))]


def kafka_table(columns: Sequence[tuple[str, int]], rows: Sequence[Sequence[str]]) -> str:
    """Return a table as Kafka prints it. Cells are left-aligned to these minimum widths, and the
    last cell of a row is not padded.
    """
    widths = [
        max(least, *(len(row[at]) for row in rows), 0) if least else 0
        for at, (_, least) in enumerate(columns)
    ]
    lines = [[title for title, _ in columns], *rows]
    return "".join(
        " ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + "\n"
        for line in lines
    )


def _row_values(
    name: TopicPartition, row: GroupRow, committed: OffsetAndMetadata | None
) -> dict[str, Any]:
    return {
        "topic": name.topic,
        "partition": name.partition,
        "offset": row.offset,
        "end_offset": row.end_offset,
        "lag": row.lag,
        "metadata": None if committed is None else committed.metadata,
        "member": None if row.member is None else row.member.member_id,
    }


def _member_values(member: MemberDescription) -> dict[str, Any]:
    return {
        "member": member.member_id,
        "instance": member.instance_id,
        "client_id": member.client_id,
        "host": member.host,
        "topics": list(member.topics),
        "partitions": [name._asdict() for name in member.partitions],
    }


def _event_values(event: RebalanceEvent) -> dict[str, Any]:
    return {
        "ended_at": instant_text(event.ended_at_ms),
        "duration_ms": event.duration_ms,
        "generation": event.generation,
        "members": event.member_count,
        "moved_partitions": None if event.moved_partitions < 0 else event.moved_partitions,
        "harmless": event.is_harmless,
        "story": event.story,
    }
