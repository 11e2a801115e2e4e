"""`barnabas metadata`: what `zookeeper-shell.sh` is for looking, and how Kafka's tree moves in.

The tree of a broker without ZooKeeper lies in its first log directory. It is read from the files,
whether the broker runs or not, as it was at that moment.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from barnabas.cli.dump_small import read_epochs
from barnabas.cluster import layout
from barnabas.cluster.embedded import EmbeddedStore
from barnabas.cluster.importing import ImportSummary, import_tree
from barnabas.cluster.store import MetadataStore, Znode
from barnabas.config import BrokerConfig, from_environment, parse_properties
from barnabas.errors import BarnabasError, ConfigError, CorruptData
from barnabas.storage.epochs import FILE_NAME as LEADER_EPOCHS
from barnabas.storage.files import OsFiles
from barnabas.types import TopicPartition

_MAX_TREE_BYTES = 1 << 30
_LOCK = ".lock"
_META = "meta.properties"

_directory = click.option(
    "--dir",
    "directory",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="The broker's first log directory; by default where `server start` puts it.",
)


@click.group()
def metadata() -> None:
    """Look into the metadata tree of a broker, or fill an empty one from Kafka's.

    \b
    Examples:
      barnabas metadata ls /brokers/topics --dir ~/barnabas
      barnabas metadata get /brokers/topics/test --dir ~/barnabas
      barnabas metadata import tree.json --dir /srv/log
    """


@metadata.command()
@click.argument("path")
@_directory
@click.option("--stat", is_flag=True, help="Also the node's version, czxid, owner and children.")
def get(path: str, directory: Path | None, stat: bool) -> None:
    """Print the data of a node, as it is stored.

    \b
    Examples:
      barnabas metadata get /brokers/topics/test
      barnabas metadata get /controller --dir ~/barnabas --stat
    """
    node = asyncio.run(_read(_first_directory(directory), _checked(path)))
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
@click.option("--recursive", "-R", is_flag=True, help="Everything below, as whole paths.")
def ls(path: str, directory: Path | None, recursive: bool) -> None:
    """List the children of a node, one a line.

    \b
    Examples:
      barnabas metadata ls /
      barnabas metadata ls /brokers/topics --dir ~/barnabas
      barnabas metadata ls / --recursive
    """
    where = _first_directory(directory)
    _checked(path)
    if recursive:
        for found in asyncio.run(_all_below(where, path)):
            click.echo(found)
    else:
        for name in sorted(asyncio.run(_read(where, path)).children):
            click.echo(name)


@metadata.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--dir",
    "directories",
    type=click.Path(path_type=Path),
    multiple=True,
    required=True,
    metavar="DIR",
    help="The broker's log directory; if there are several, all of them, in the order of log.dirs.",
)
def import_(file: Path, directories: tuple[Path, ...]) -> None:
    """Fill the empty metadata of a stopped broker from a tree of ZooKeeper's, as JSON.

    The file maps each path to its node: {"/brokers/topics/test": {"data": "{...}"}, ...}. Ephemeral
    nodes are left behind. A partition whose state is missing gets one, with a leader epoch above
    all of those in its log.

    \b
    Examples:
      barnabas metadata import tree.json --dir /var/lib/kafka
      barnabas metadata import tree.json --dir /disk1/kafka --dir /disk2/kafka
    """
    tree = _tree(file)
    for directory in directories:
        if not directory.is_dir():
            raise ConfigError(f"{directory} is not a directory")
        _check_cluster(directory, tree)
    try:
        lock = OsFiles().lock(directories[0] / _LOCK)
    except BlockingIOError as cause:
        raise ConfigError(
            f"{directories[0]} is in use by a running broker; stop that one first"
        ) from cause
    try:
        summary = asyncio.run(_import(tree, directories))
    finally:
        lock.release()
    for line in _summary_lines(summary, file, directories[0]):
        click.echo(line)


def _summary_lines(summary: ImportSummary, file: Path, directory: Path) -> Iterator[str]:
    yield (
        f"Imported {summary.nodes} nodes with {summary.topics} topics and {summary.partitions} "
        f"partitions from {file} into {directory}."
    )
    if summary.ephemeral_nodes:
        yield f"Left behind {summary.ephemeral_nodes} ephemeral nodes."
    for topic, count in Counter(name.topic for name in summary.new_states).items():
        yield f"Made the states of {count} partitions of {topic}, which the file does not have."


def _tree(file: Path) -> dict[str, Any]:
    """The nodes by path. Raises CorruptData for what is not JSON, or not of that shape."""
    if file.stat().st_size > _MAX_TREE_BYTES:
        raise CorruptData(f"{file} is larger than {_MAX_TREE_BYTES} bytes")
    try:
        tree = json.loads(file.read_bytes())
    except (ValueError, RecursionError) as cause:
        raise CorruptData(f"{file} is not JSON: {cause}") from cause
    if not isinstance(tree, dict):
        raise CorruptData(f"{file} is not an object of nodes by their paths")
    return tree


def _check_cluster(directory: Path, tree: dict[str, Any]) -> None:
    """Refuse a tree of another cluster than that of the directory. Raises CorruptData too."""
    meta = directory / _META
    if not meta.exists():
        return
    theirs = parse_properties(meta.read_text(errors="replace")).get("cluster.id")
    node = tree.get(layout.CLUSTER_ID)
    data = node.get("data") if isinstance(node, dict) else None
    if not isinstance(data, str):
        return  # no id at all: `import_tree` says what is wrong with the tree, if anything is
    named = layout.decode_cluster_id(data.encode())
    if theirs is not None and theirs != named:
        raise ConfigError(f"{directory} belongs to the cluster {theirs}, and the tree to {named}")


async def _import(tree: dict[str, Any], directories: tuple[Path, ...]) -> ImportSummary:
    def latest_epoch(partition: TopicPartition) -> int:
        """The newest in the partition's log, wherever that lies; -1: none."""
        found = [-1]
        for directory in directories:
            path = directory / str(partition) / LEADER_EPOCHS
            found += [entry.epoch for entry in read_epochs(path)]
        return max(found)

    store = EmbeddedStore.open(directories[0])
    try:
        return await import_tree(store, tree, latest_epoch)
    finally:
        await store.close()


def _first_directory(given: Path | None) -> Path:
    """Where the tree lies: the option, else what `server start` would take. Raises ConfigError."""
    if given is not None:
        return given
    return Path(BrokerConfig(from_environment(os.environ)).log_directories()[0])


def _checked(path: str) -> str:
    """Raises UsageError for what cannot be the path of a node."""
    if not path.startswith("/") or (path != "/" and "" in path[1:].split("/")):
        raise click.UsageError(f"{path} is not the path of a node, as /brokers/topics is")
    return path


async def _read(directory: Path, path: str) -> Znode:
    return await _node(EmbeddedStore.open(directory, read_only=True), path)


async def _node(store: MetadataStore, path: str) -> Znode:
    node = await store.read(path)
    if node is None:
        raise NoSuchNode(path)
    return node


async def _all_below(directory: Path, top: str) -> list[str]:
    store = EmbeddedStore.open(directory, read_only=True)
    found, left = [], [top]
    while left:
        path = left.pop()
        found.append(path)
        prefix = path.rstrip("/")
        left += [f"{prefix}/{name}" for name in (await _node(store, path)).children]
    return sorted(found)


class NoSuchNode(BarnabasError):
    """The tree has no node of that path."""

    def __init__(self, path: str) -> None:
        super().__init__(f"there is no node {path}; `barnabas metadata ls /` shows what there is")
