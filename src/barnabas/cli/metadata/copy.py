"""Implements `barnabas metadata copy`, which exports a tree and imports it elsewhere (ZS-4)."""

from __future__ import annotations

from pathlib import Path

import click

from barnabas.cli.metadata.export import read_tree, warn_of
from barnabas.cli.metadata.import_command import write_tree
from barnabas.cli.metadata.tree_source import NO_SOURCE, TreeSource

_FROM_DIR, _TO_DIR = "--from-dir", "--to-dir"
_FROM_ZOOKEEPER, _TO_ZOOKEEPER = "--from-zookeeper", "--to-zookeeper"
_FROM_CONFIG, _TO_CONFIG = "--from-config", "--to-config"
_ADDRESS = "HOST:PORT[,...][/CHROOT]"


@click.command()
@click.option(_FROM_ZOOKEEPER, metavar=_ADDRESS, help="Read the tree of a cluster.")
@click.option(_FROM_CONFIG, type=click.Path(), metavar="FILE", help="Read where this broker does.")
@click.option(
    _FROM_DIR,
    "from_directories",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="DIR",
    help="Read the log directories of a broker without ZooKeeper: all of them.",
)
@click.option(_TO_ZOOKEEPER, metavar=_ADDRESS, help="Write the tree into this ZooKeeper.")
@click.option(_TO_CONFIG, type=click.Path(), metavar="FILE", help="Write where this broker reads.")
@click.option(
    _TO_DIR,
    "to_directories",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="DIR",
    help="The log directories of the broker that uses the copy: all of them.",
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
    write_tree(found.tree, origin, to_directories, settings)
    warn_of(found)


def _place(connect: str | None, file: str | None, *names: str) -> TreeSource:
    if connect is not None and file is not None:
        raise click.UsageError(f"{names[0]} cannot be combined with {names[1]}")
    return TreeSource(connect, file)
