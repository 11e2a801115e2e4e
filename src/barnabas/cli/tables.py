"""Prints tables of topics and configs on a terminal; a pipe receives plain lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from barnabas.cli.configs.text import heading, synonym_text
from barnabas.cli.terminal_table import Cells, show_table, size_text
from barnabas.cli.topics.describe import (
    NOTHING_MOVES,
    Described,
    Filters,
    Moving,
    own_configs,
    replication_factor,
)
from barnabas.client.admin.admin import TopicDescription
from barnabas.client.admin.configs import ConfigEntry, ConfigResource
from barnabas.client.view import PartitionView
from barnabas.counted import counted
from barnabas.types import uuid_text


def show_topics(
    described: Described,
    filters: Filters,
    console: Console | None = None,
    moving: Moving = NOTHING_MOVES,
) -> None:
    """Print a table for each topic, highlighting partitions with problems."""
    console = console or Console(highlight=False)
    shown = 0
    for topic, configs in described:
        partitions = filters.of(topic, configs, moving)
        # A filter omits topics without matching partitions, including their headings.
        if not partitions:
            continue
        shown += 1
        if shown > 1:
            console.print()
        heading = Text(topic.name, style="bold")
        count = len(topic.partitions)
        replicas = replication_factor(topic, moving)
        heading.append(
            f"  {counted(count, 'partition')}, {counted(replicas, 'replica')}, "
            f"id {uuid_text(topic.topic_id)}",
            style="dim",
        )
        console.print(heading)
        for name, value in own_configs(configs).items():
            console.print(Text(f"  {name}={value}"))
        console.print(_partition_table(partitions))
    if not shown:
        console.print("No such partition." if any(filters) else "No topics.")


def show_topic_list(
    topics: Sequence[TopicDescription], sizes: Mapping[str, int], console: Console | None = None
) -> None:
    """Print a row for each topic. `sizes` maps topics to known sizes in bytes."""
    rows: list[Cells] = []
    for topic in topics:
        parts = topic.partitions
        ill = sum(each.leader < 0 or len(each.isr) < len(each.replicas) for each in parts)
        rows.append(
            [
                Text(topic.name, style="dim" if topic.is_internal else ""),
                str(len(parts)),
                str(replication_factor(topic, NOTHING_MOVES)),
                size_text(sizes.get(topic.name)),
                Text(
                    f"{counted(ill, 'partition')} under-replicated or offline" if ill else "",
                    style="yellow",
                ),
            ]
        )
    titles = ("topic", ">partitions", ">replicas", ">size", "")
    show_table(console or Console(highlight=False), titles, rows, "No topics.")


def show_configs(
    resource: ConfigResource,
    entries: list[ConfigEntry],
    everything: bool,
    console: Console | None = None,
) -> None:
    """Print a row for each config, with its value, source and description."""
    console = console or Console(highlight=False)
    console.print(Text(heading(resource, everything), style="bold"))
    if not entries:
        console.print("  none")
        return
    table = Table(box=None, pad_edge=True, header_style="dim")
    for title in ("config", "value", "from", "description"):
        table.add_column(title, overflow="fold")
    for entry in entries:
        # Brokers return null for sensitive configs, but "null" would look like an unset config.
        value = "(hidden)" if entry.is_sensitive else entry.value
        table.add_row(
            Text(entry.name),
            Text("null" if value is None else value),
            Text("\n".join(map(synonym_text, entry.synonyms)), style="dim"),
            Text(entry.documentation or "", style="dim"),
        )
    console.print(table)


def _partition_table(partitions: list[PartitionView]) -> Table:
    table = Table(box=None, pad_edge=True, header_style="dim")
    for title in ("partition", "leader", "replicas", "in sync"):
        table.add_column(title, justify="right" if title == "partition" else "left")
    for partition in partitions:
        leaderless = partition.leader < 0
        behind = len(partition.isr) < len(partition.replicas)
        table.add_row(
            str(partition.partition),
            Text("none", style="bold red") if leaderless else str(partition.leader),
            ",".join(map(str, partition.replicas)),
            Text(",".join(map(str, partition.isr)), style="yellow" if behind else ""),
        )
    return table
