"""Implements `barnabas metadata import`, which writes the tree of a `metadata export` (ZK-6)."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from barnabas.cli.dump.small_files import read_epochs
from barnabas.cli.metadata.repair import cluster_of, lock_directory
from barnabas.cli.metadata.tree_source import NO_SOURCE, TreeSource, open_zookeeper, tree_source
from barnabas.cluster import layout
from barnabas.cluster.embedded import EmbeddedStore
from barnabas.cluster.importing import ImportSummary, import_tree
from barnabas.cluster.store import MetadataStore
from barnabas.counted import counted
from barnabas.errors import ConfigError, CorruptData
from barnabas.storage.epochs import FILE_NAME as LEADER_EPOCHS
from barnabas.types import TopicPartition

if TYPE_CHECKING:
    from barnabas.cluster.zookeeper_settings import Settings

_MAX_TREE_BYTES = 1 << 30


@click.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--dir",
    "directories",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="DIR",
    help="The broker's log directories: all of them, in the order of log.dirs.",
)
@tree_source
def import_(file: Path, directories: tuple[Path, ...], source: TreeSource) -> None:
    """Import a ZooKeeper tree, as JSON, into the empty metadata of a stopped broker or cluster.

    The file maps each path to its node: {"/brokers/topics/test": {"data": "{...}"}, ...}. Ephemeral
    nodes are left out. `barnabas metadata export` writes such a file. A partition without a state
    node gets one, with a leader epoch above those in its logs in these directories. The tree is
    written to each of them, or to ZooKeeper if one is specified.

    \b
    Examples:
      barnabas metadata import tree.json --dir /var/lib/kafka
      barnabas metadata import tree.json --dir /disk1/kafka --dir /disk2/kafka
      barnabas metadata import tree.json --zookeeper-connect localhost:2181 --dir /var/lib/kafka
    """
    # Ignore the environment, because an import must be written only to a place that the user
    # specified.
    settings = source.zookeeper() if source != NO_SOURCE else None
    if settings is None and not directories:
        raise click.UsageError("name the target: --dir or --zookeeper-connect")
    write_tree(_tree(file), str(file), directories, settings)


def write_tree(
    tree: dict[str, Any], origin: str, directories: tuple[Path, ...], settings: Settings | None
) -> None:
    """Write a tree into ZooKeeper, or into these directories, and print a summary.

    Raises ConfigError, CorruptData or another BarnabasError if this is impossible. Nothing is
    written then.
    """
    for directory in directories:
        if not directory.is_dir():
            raise ConfigError(f"{directory} is not a directory")
        # Check this before any lock or write, because the tree of another cluster would orphan the
        # logs.
        _check_cluster(directory, tree)
    with ExitStack() as locks:
        for directory in directories:
            # The lock prevents a broker that starts during the import from writing the files.
            locks.callback(lock_directory(directory).release)
        summary = asyncio.run(_import(tree, directories, settings))
    into = ", ".join(map(str, directories)) if settings is None else settings.connect
    for line in _summary_lines(summary, origin, into):
        click.echo(line)


def _summary_lines(summary: ImportSummary, origin: str, into: str) -> Iterator[str]:
    yield (
        f"Imported {counted(summary.nodes, 'node')} with {counted(summary.topics, 'topic')} and "
        f"{counted(summary.partitions, 'partition')} from {origin} into {into}."
    )
    if summary.ephemeral_nodes:
        yield f"Left out {counted(summary.ephemeral_nodes, 'ephemeral node')}."
    for topic, count in Counter(name.topic for name in summary.new_states).items():
        states = f"states of {counted(count, 'partition')}"
        yield f"Created the {states} of {topic}, which the tree lacks."
    for topic, count in Counter(name.topic for name in summary.raised_epochs).items():
        epochs = f"leader epochs of {counted(count, 'partition')}"
        yield f"Raised the {epochs} of {topic}, whose logs are newer than the tree."


def _tree(file: Path) -> dict[str, Any]:
    """Return the nodes by path. Raises CorruptData if the file is not an exported tree."""
    if file.stat().st_size > _MAX_TREE_BYTES:
        raise CorruptData(f"{file} is larger than {_MAX_TREE_BYTES} bytes")
    try:
        tree = json.loads(file.read_bytes())
    except (ValueError, RecursionError) as cause:
        raise CorruptData(f"{file} is not JSON: {cause}") from cause
    if not isinstance(tree, dict):
        raise CorruptData(f"{file} is not an object that maps paths to nodes")
    return tree


def _check_cluster(directory: Path, tree: dict[str, Any]) -> None:
    """Reject a tree that belongs to a different cluster than the directory. Raises ConfigError or
    CorruptData.
    """
    theirs = cluster_of(directory)
    if theirs is None:
        return
    node = tree.get(layout.CLUSTER_ID)
    data = node.get("data") if isinstance(node, dict) else None
    if not isinstance(data, str):
        return  # without an id, `import_tree` reports the error
    named = layout.decode_cluster_id(data.encode())
    if theirs != named:
        raise ConfigError(f"{directory} belongs to cluster {theirs}, the tree to {named}")


async def _import(
    tree: dict[str, Any], directories: tuple[Path, ...], settings: Settings | None
) -> ImportSummary:
    def latest_epoch(partition: TopicPartition) -> int:
        """Return the latest epoch in any of the partition's logs, or -1 if there is none."""
        found = [-1]
        for directory in directories:
            path = directory / str(partition) / LEADER_EPOCHS
            found += [entry.epoch for entry in read_epochs(path)]
        return max(found)

    store: MetadataStore
    if settings is None:
        store = EmbeddedStore.open(*directories)
    else:
        store = await open_zookeeper(settings, makes_chroot=True)
    try:
        return await import_tree(store, tree, latest_epoch)
    finally:
        await store.close()
