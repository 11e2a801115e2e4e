"""Implements `barnabas metadata export`, which writes the tree to a file for `metadata import`
(ZK-6)."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import click

from barnabas.cli.metadata.tree_source import (
    NO_SOURCE,
    TreeSource,
    directories_option,
    reading,
    tree_source,
)
from barnabas.cluster.exporting import Export, export_tree
from barnabas.config.zookeeper_keys import hosts_and_chroot
from barnabas.counted import counted
from barnabas.errors import ConfigError

_STANDARD_OUTPUT = Path("-")


@click.command()
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@directories_option(
    "--dir",
    "directories",
    "The log directories of a broker without ZooKeeper; default: all of them.",
)
@tree_source
def export(file: Path, directories: tuple[Path, ...], source: TreeSource) -> None:
    """Export the metadata tree of a broker or cluster as JSON, for `barnabas metadata import`.

    FILE is created and is readable only by its owner, because the tree contains users' credentials;
    - stands for standard output. The broker or cluster may be running; a warning is printed if the
    tree keeps changing. Nodes of other programs in the root of a ZooKeeper are left out. The nodes'
    access rights (ZooKeeper's ACLs) are not exported; `barnabas metadata secure` sets them again.

    \b
    Examples:
      barnabas metadata export tree.json
      barnabas metadata export tree.json --dir /disk1/kafka --dir /disk2/kafka
      barnabas metadata export tree.json --zookeeper-connect localhost:2181/kafka
      barnabas metadata export - --config server.properties | gzip > tree.json.gz
    """
    if directories and source != NO_SOURCE:
        raise click.UsageError("--dir cannot be combined with --zookeeper-connect or --config")
    # Never overwrite an export, because it is often the only copy of an earlier state.
    if file != _STANDARD_OUTPUT and file.exists():
        raise ConfigError(f"{file} already exists; choose another name, or delete it first")
    found = read_tree(source, directories)
    content = json.dumps(found.tree, indent=1).encode() + b"\n"
    if file == _STANDARD_OUTPUT:
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    else:
        from barnabas.security.secret_file import write_secret

        write_secret(file, content)
    ephemeral = sum("ephemeral" in node for node in found.tree.values())
    into = "" if file == _STANDARD_OUTPUT else f" into {file}"
    # On standard error, because the tree may be on standard output.
    click.echo(
        f"Exported {counted(len(found.tree), 'node')} with {counted(found.topics, 'topic')}{into}; "
        f"{counted(ephemeral, 'ephemeral node')} will not be imported.",
        err=True,
    )
    warn_of(found)


def read_tree(source: TreeSource, directories: tuple[Path, ...]) -> Export:
    """Read the tree in ZooKeeper or in these directories. Raises ConfigError if there is none."""
    found = asyncio.run(_read(source, directories))
    if not found.tree.keys() - {"/"}:
        raise ConfigError("there is no metadata of a cluster here; check the chroot or --dir")
    return found


async def _read(source: TreeSource, directories: tuple[Path, ...]) -> Export:
    settings = None if directories else source.zookeeper()
    # Only the root may contain other programs' nodes, because a chroot belongs to the cluster.
    has_others = settings is not None and not hosts_and_chroot(settings.connect)[1]
    async with reading(source, *directories) as store:
        return await export_tree(store, has_others=has_others)


def warn_of(found: Export) -> None:
    """Print what an export lacks, and whether it may be inconsistent, on standard error."""
    if found.others:
        click.echo(f"Left out nodes of other programs: {', '.join(found.others)}.", err=True)
    if found.changed is not None:
        click.echo(
            f"warning: {found.changed} and perhaps others changed while the tree was read: stop "
            "the brokers first for a consistent copy",
            err=True,
        )
