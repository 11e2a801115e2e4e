"""Formats the tables of `kafka-consumer-groups.sh` where they differ from `barnabas groups`.
Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from barnabas.cli.groups.rows import DescribedGroup
from barnabas.cli.kafka.java_errors import java_text
from barnabas.client.admin.group_admin import GroupDescription, GroupListing, MemberDescription
from barnabas.errors import KafkaError
from barnabas.types import TopicPartition

_NOTHING = "-"
_NAME_WIDTH, _BESIDE_NAME = 15, 10
_CELL = 20


def list_text(listings: Sequence[GroupListing], *, with_type: bool, with_state: bool) -> str:
    """Return the names, one per line, or a table if the type or the state is requested."""
    if not (with_type or with_state):
        return "".join(f"{each.group_id}\n" for each in listings)
    # If the type or the state is requested, Kafka pads the names with ten blanks. Our table does
    # not.
    width = max([_NAME_WIDTH, *(len(each.group_id) for each in listings)]) + _BESIDE_NAME
    rows = [("GROUP", "TYPE", "STATE")]
    rows += [
        # A broker older than KIP-848 reports no type, and all of its groups are classic.
        (each.group_id, (each.group_type or "classic").capitalize(), each.state)
        for each in listings
    ]
    return "".join(
        f"{name:<{width}}"
        + f" {group_type:<{_CELL}}" * with_type
        + f" {state:<{_CELL}}" * with_state
        + "\n"
        for name, group_type, state in rows
    )


def without_unread(described: DescribedGroup) -> DescribedGroup:
    """Keep the partitions of a group that Kafka shows: those with an offset or a member.

    Kafka shows a lag only if an offset is committed. Without one, our tool counts all records.
    """
    rows = [
        row if row.offset is not None else row._replace(lag=None)
        for row in described.rows
        if row.offset is not None or row.member is not None
    ]
    return described._replace(rows=rows)


def members_text(group: GroupDescription, *, verbose: bool) -> str:
    """Return the members of a group. With `verbose`, include their partitions."""
    members = sorted(group.members)
    # One static member (KIP-345) adds the column to all rows.
    is_static = any(member.instance_id is not None for member in members)
    titles = ["GROUP", "CONSUMER-ID", *["GROUP-INSTANCE-ID"] * is_static, "HOST", "CLIENT-ID"]
    rows = [
        [
            *(group.group_id, member.member_id, *[member.instance_id or ""] * is_static),
            *(member.host, member.client_id, str(len(member.partitions))),
        ]
        for member in members
    ]
    table = [[*titles, "#PARTITIONS"], *rows]
    widths = [max(_NAME_WIDTH, *map(len, column)) for column in zip(*table, strict=True)]
    # The last column of each row is as wide as its text.
    assignments = ["ASSIGNMENT", *map(_assignment, members)]
    return "\n" + "".join(
        "".join(f"{cell:<{width}} " for cell, width in zip(row, widths, strict=True))
        + assignment * verbose
        + "\n"
        for row, assignment in zip(table, assignments, strict=True)
    )


def deleted_offsets_text(outcomes: Mapping[TopicPartition, KafkaError | None]) -> str:
    """Return a line for each partition whose offset was to be deleted."""
    rows: list[tuple[str, str, str]] = [("TOPIC", "PARTITION", "STATUS")]
    rows += [(name.topic, str(name.partition), _status(error)) for name, error in outcomes.items()]
    return "\n" + "".join(
        f"{topic:<30} {partition:<15} {status:<15}\n" for topic, partition, status in rows
    )


def _status(error: KafkaError | None) -> str:
    return "Successful" if error is None else f"Error: :{java_text(error)}"


def _assignment(member: MemberDescription) -> str:
    """Return the partitions of each topic without the topic's name, in the form that 3.9 prints:
    `(0,1), (0)`.
    """
    return ", ".join(_numbers(own) for _, own in groupby(member.partitions, _topic)) or _NOTHING


def _topic(name: TopicPartition) -> str:
    return name.topic


def _numbers(partitions: Iterable[TopicPartition]) -> str:
    return f"({','.join(str(name.partition) for name in partitions)})"
