"""Implements `barnabas metadata import` and `metadata copy`, which write a tree (ZK-6, ZS-4)."""

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
from barnabas.cli.metadata.export import read_tree, warn_of
from barnabas.cli.metadata.repair import cluster_of, lock_directory
from barnabas.cli.metadata.tree_source import (
    NO_SOURCE,
    TreeSource,
    directories_option,
    open_zookeeper,
    tree_source,
)
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
_FROM_DIR, _TO_DIR = "--from-dir", "--to-dir"
_FROM_ZOOKEEPER, _TO_ZOOKEEPER = "--from-zookeeper", "--to-zookeeper"
_FROM_CONFIG, _TO_CONFIG = "--from-config", "--to-config"
_ADDRESS = "HOST:PORT[,...][/CHROOT]"


@click.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@directories_option(
    "--dir", "directories", "The broker's log directories: all of them, in the order of log.dirs."
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
    _write_tree(_tree(file), str(file), directories, settings)


@click.command()
@click.option(_FROM_ZOOKEEPER, metavar=_ADDRESS, help="Read the tree of a cluster.")
@click.option(_FROM_CONFIG, type=click.Path(), metavar="FILE", help="Read where this broker does.")
@directories_option(
    _FROM_DIR,
    "from_directories",
    "Read the log directories of a broker without ZooKeeper: all of them.",
)
@click.option(_TO_ZOOKEEPER, metavar=_ADDRESS, help="Write the tree into this ZooKeeper.")
@click.option(_TO_CONFIG, type=click.Path(), metavar="FILE", help="Write where this broker reads.")
@directories_option(
    _TO_DIR, "to_directories", "The log directories of the broker that uses the copy: all of them."
)
def copy(
    from_zookeeper: str | None,
    from_config: str | None,
    from_directories: tuple[Path, ...],
    to_zookeeper: str | None,
    to_config: str | None,
    to_directories: tuple[Path, ...],
) -> None:
    """Copy the metadata tree of a broker or cluster into empty metadata elsewhere.

    The source and the target are each a ZooKeeper (of Barnabas or of Apache) or the log directories
    of a broker. If the target is a ZooKeeper, --to-dir is optional: leader epochs are then raised
    above those in the logs there. Ephemeral nodes and the nodes' access rights are not copied, and
    the target must not be in use. The source may be, but stop its brokers for a consistent copy.

    \b
    Examples:
      barnabas metadata copy --from-zookeeper zk1:2181/kafka --to-zookeeper localhost:2181
      barnabas metadata copy --from-dir /srv/log --to-zookeeper localhost:2181 --to-dir /srv/log
      barnabas metadata copy --from-config old.properties --to-dir /disk1/log --to-dir /disk2/log
    """
    source = _place(from_zookeeper, from_config, _FROM_ZOOKEEPER, _FROM_CONFIG)
    if (source == NO_SOURCE) == (not from_directories):
        raise click.UsageError(f"name one source: {_FROM_ZOOKEEPER}, {_FROM_CONFIG} or {_FROM_DIR}")
    target = _place(to_zookeeper, to_config, _TO_ZOOKEEPER, _TO_CONFIG)
    if target == NO_SOURCE and not to_directories:
        raise click.UsageError(f"name the target: {_TO_ZOOKEEPER}, {_TO_CONFIG} or {_TO_DIR}")
    # Determine the target first, so that a mistake there is reported before the tree is read.
    settings = target.zookeeper() if target != NO_SOURCE else None
    if settings is None and not to_directories:
        to_directories = tuple(target.log_directories())
    found = read_tree(source, from_directories)
    origin = from_zookeeper or from_config or ", ".join(map(str, from_directories))
    _write_tree(found.tree, origin, to_directories, settings)
    warn_of(found)


def _place(connect: str | None, file: str | None, *names: str) -> TreeSource:
    if connect is not None and file is not None:
        raise click.UsageError(f"{names[0]} cannot be combined with {names[1]}")
    return TreeSource(connect, file)


def _write_tree(
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
