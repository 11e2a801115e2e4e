"""Implements `barnabas metadata`, which reads the tree like `zookeeper-shell.sh` and imports trees.

The tree of a cluster is in its ZooKeeper, and the tree of a broker without ZooKeeper is in its log
directories. The files are read as they are, even if the broker is running.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from barnabas.cli.dump.small_files import read_epochs
from barnabas.cli.group import command_group
from barnabas.cli.metadata.export import export
from barnabas.cli.metadata.repair import cluster_of, lock_directory, repair
from barnabas.cli.metadata.secure import secure
from barnabas.cli.metadata.tree_source import (
    NO_SOURCE,
    TreeSource,
    open_zookeeper,
    reading,
    tree_source,
)
from barnabas.cluster import layout
from barnabas.cluster.embedded import EmbeddedStore
from barnabas.cluster.exporting import nodes_below
from barnabas.cluster.importing import ImportSummary, import_tree
from barnabas.cluster.store import MetadataStore, Znode
from barnabas.counted import counted
from barnabas.errors import BarnabasError, ConfigError, CorruptData
from barnabas.storage.epochs import FILE_NAME as LEADER_EPOCHS
from barnabas.types import TopicPartition

if TYPE_CHECKING:
    from barnabas.cluster.zookeeper_settings import Settings

_MAX_TREE_BYTES = 1 << 30

_directory = click.option(
    "--dir",
    "directory",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="A log directory of a broker without ZooKeeper; default: all of them.",
)


@command_group()
def metadata() -> None:
    """Read, protect, export, import or repair the metadata of a broker or cluster.

    \b
    Examples:
      barnabas metadata ls /brokers/topics --dir ~/barnabas
      barnabas metadata ls /brokers/ids --zookeeper-connect localhost:2181/kafka
      barnabas metadata get /brokers/topics/test --dir ~/barnabas
      barnabas metadata export tree.json --zookeeper-connect localhost:2181/kafka
      barnabas metadata import tree.json --dir /srv/log
      barnabas metadata secure --config server.properties
      barnabas metadata repair --dir /srv/log
    """


metadata.add_command(export)
metadata.add_command(repair)
metadata.add_command(secure)


@metadata.command()
@click.argument("path")
@_directory
@tree_source
@click.option("--stat", is_flag=True, help="Add the node's version, czxid, owner and children.")
def get(path: str, directory: Path | None, source: TreeSource, stat: bool) -> None:
    """Print the data of a node as it is stored.

    \b
    Examples:
      barnabas metadata get /brokers/topics/test
      barnabas metadata get /controller --dir ~/barnabas --stat
      barnabas metadata get /controller --zookeeper-connect localhost:2181
    """
    _check(path, directory, source)
    node = asyncio.run(_read(source, directory, path))
    sys.stdout.buffer.write((b"null" if node.data is None else node.data) + b"\n")
    sys.stdout.buffer.flush()
    if stat:
        for name, value in (
            ("czxid", node.czxid),
            ("dataVersion", node.version),
            ("ephemeralOwner", node.owner),
            ("numChildren", len(node.children)),
        ):
            click.echo(f"{name} = {value}")


@metadata.command()
@click.argument("path", default="/")
@_directory
@tree_source
@click.option("--recursive", "-R", is_flag=True, help="All nodes below, as full paths.")
def ls(path: str, directory: Path | None, source: TreeSource, recursive: bool) -> None:
    """List the children of a node, one per line.

    \b
    Examples:
      barnabas metadata ls /
      barnabas metadata ls /brokers/topics --dir ~/barnabas
      barnabas metadata ls / --recursive --config server.properties
    """
    _check(path, directory, source)
    if recursive:
        for found in asyncio.run(_all_below(source, directory, path)):
            click.echo(found)
    else:
        for name in sorted(asyncio.run(_read(source, directory, path)).children):
            click.echo(name)


@metadata.command("import")
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
    tree = _tree(file)
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
    for line in _summary_lines(summary, file, into):
        click.echo(line)


def _summary_lines(summary: ImportSummary, file: Path, into: str) -> Iterator[str]:
    yield (
        f"Imported {counted(summary.nodes, 'node')} with {counted(summary.topics, 'topic')} and "
        f"{counted(summary.partitions, 'partition')} from {file} into {into}."
    )
    if summary.ephemeral_nodes:
        yield f"Left out {counted(summary.ephemeral_nodes, 'ephemeral node')}."
    for topic, count in Counter(name.topic for name in summary.new_states).items():
        states = f"states of {counted(count, 'partition')}"
        yield f"Created the {states} of {topic}, which the file lacks."
    for topic, count in Counter(name.topic for name in summary.raised_epochs).items():
        epochs = f"leader epochs of {counted(count, 'partition')}"
        yield f"Raised the {epochs} of {topic}, whose logs are newer than the file."


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


def _check(path: str, directory: Path | None, source: TreeSource) -> None:
    """Raise UsageError if the path is invalid or two sources are given."""
    if not path.startswith("/") or (path != "/" and "" in path[1:].split("/")):
        raise click.UsageError(f"{path} is not the path of a node, such as /brokers/topics")
    if directory is not None and source != NO_SOURCE:
        raise click.UsageError("--dir cannot be combined with --zookeeper-connect or --config")


async def _read(source: TreeSource, directory: Path | None, path: str) -> Znode:
    async with reading(source, directory) as store:
        return await _node(store, path)


async def _node(store: MetadataStore, path: str) -> Znode:
    node = await store.read(path)
    if node is None:
        raise NoSuchNode(path)
    return node


async def _all_below(source: TreeSource, directory: Path | None, top: str) -> list[str]:
    async with reading(source, directory) as store:
        await _node(store, top)
        return sorted(await nodes_below(store, [top]))


class NoSuchNode(BarnabasError):
    """Raised if the tree has no node at the path."""

    def __init__(self, path: str) -> None:
        super().__init__(f"there is no node {path}; `barnabas metadata ls /` lists the nodes")
