"""Implements `barnabas metadata`, which reads the tree like `zookeeper-shell.sh`.

The tree of a cluster is in its ZooKeeper, and the tree of a broker without ZooKeeper is in its log
directories. The files are read as they are, even if the broker is running.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import click

from barnabas.cli.group import command_group
from barnabas.cli.metadata.export import export
from barnabas.cli.metadata.import_command import copy, import_
from barnabas.cli.metadata.repair import repair
from barnabas.cli.metadata.secure import secure
from barnabas.cli.metadata.tree_source import NO_SOURCE, TreeSource, reading, tree_source
from barnabas.cluster.exporting import nodes_below
from barnabas.cluster.store import MetadataStore, Znode
from barnabas.errors import BarnabasError

_directory = click.option(
    "--dir",
    "directory",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="A log directory of a broker without ZooKeeper; default: all of them.",
)


@command_group()
def metadata() -> None:
    """Read, copy, export, import, protect or repair the metadata of a broker or cluster.

    \b
    Examples:
      barnabas metadata ls /brokers/topics --dir ~/barnabas
      barnabas metadata ls /brokers/ids --zookeeper-connect localhost:2181/kafka
      barnabas metadata get /brokers/topics/test --dir ~/barnabas
      barnabas metadata export tree.json --zookeeper-connect localhost:2181/kafka
      barnabas metadata import tree.json --dir /srv/log
      barnabas metadata copy --from-zookeeper zk1:2181/kafka --to-zookeeper localhost:2181
      barnabas metadata secure --config server.properties
      barnabas metadata repair --dir /srv/log
    """


metadata.add_command(copy)
metadata.add_command(export)
metadata.add_command(import_)
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
