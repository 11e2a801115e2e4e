"""Implements `barnabas metadata repair`, which repairs the damaged metadata of a broker without
ZooKeeper (ZK-6).
"""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from barnabas.cluster import layout
from barnabas.cluster.embedded import EmbeddedStore
from barnabas.cluster.journal import Journal
from barnabas.cluster.journal_copies import JOURNAL_NAME, merge_without_loss, read_copies
from barnabas.cluster.store import Create
from barnabas.config import BrokerConfig, parse_properties
from barnabas.counted import counted
from barnabas.errors import ConfigError
from barnabas.storage.directory import LOCK_NAME, META_NAME
from barnabas.storage.files import OsFiles

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from barnabas.storage.files import Lock


@click.command()
@click.option(
    "--dir",
    "directories",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    multiple=True,
    metavar="DIR",
    help="The broker's log directories: all of them.",
)
@click.option(
    "--config",
    "properties_file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="The broker's properties file, which names them.",
)
@click.option(
    "--accept-loss",
    "accepts_loss",
    is_flag=True,
    help="Continue without the commits that no copy has; the damaged files are kept.",
)
def repair(directories: tuple[Path, ...], properties_file: Path | None, accepts_loss: bool) -> None:
    """Check the metadata in the log directories of a stopped broker, and repair damaged parts.

    Each directory has a copy of the metadata. Parts that are damaged in one copy are restored from
    another, as at startup. Parts that are destroyed in all copies are lost, and can be restored
    only from a backup. With --accept-loss, everything before the damage is kept. The broker then no
    longer knows the topics that were lost, but their logs are kept.

    Specify all log directories, or the properties file. If a directory is left out, its history
    will differ from that of the others, and the broker will refuse to start with both.

    
    Examples:
      barnabas metadata repair --config server.properties
      barnabas metadata repair --dir /disk1/kafka --dir /disk2/kafka --accept-loss
    """
    if properties_file is not None:
        directories = _named_in(properties_file, directories)
    elif not directories:
        raise click.UsageError("name the broker's log directories by --dir, or use --config")
    elif accepts_loss:
        click.echo(
            f"warning: if the broker has log directories other than "
            f"{', '.join(map(str, directories))}, they keep a different history, and it will "
            "not start with both; run this again with all of them, or with --config",
            err=True,
        )
    with ExitStack() as locks:
        for directory in directories:
            locks.callback(lock_directory(directory).release)
        for line in asyncio.run(_repair(directories, accepts_loss)):
            click.echo(line)


def _named_in(properties_file: Path, given: Sequence[Path]) -> tuple[Path, ...]:
    """Return the log directories in a broker's properties file. Raises ConfigError if any is
    missing or left out of `given`.
    """
    properties = parse_properties(properties_file.read_text(errors="replace"))
    named = tuple(map(Path, BrokerConfig(properties).log_directories()))
    # The history of a directory that was left out would differ from that of the others, and the
    # broker would refuse to start with both.
    if given and {each.resolve() for each in given} != {each.resolve() for each in named}:
        raise ConfigError(
            f"the log directories in {properties_file} are {', '.join(map(str, named))}: "
            "name all of them and no other, or leave --dir out"
        )
    missing = [str(each) for each in named if not each.is_dir()]
    if missing:
        raise ConfigError(
            f"{', '.join(missing)}, which {properties_file} names, cannot be found: mount it, or "
            "take it out of log.dirs if it is lost"
        )
    return named


async def _repair(directories: Sequence[Path], accepts_loss: bool) -> list[str]:
    # If nothing exists at the path, it may be wrong, and a repair would create an empty tree.
    if not accepts_loss and merge_without_loss(read_copies(directories)).is_new:
        raise ConfigError(
            f"there is no {JOURNAL_NAME} with content in {', '.join(map(str, directories))}: "
            "restore it from a backup, or start without any topic with --accept-loss"
        )
    journal = Journal(*directories, accepts_loss=accepts_loss)
    kept = list(journal.kept)
    store = EmbeddedStore(journal)
    try:
        await _begin_again(store, directories)
        return list(_report(store, directories, kept))
    finally:
        await store.close()


async def _begin_again(store: EmbeddedStore, directories: Sequence[Path]) -> None:
    """Write the logs' cluster id into an empty store, so that the broker can start."""
    found = {each for directory in directories if (each := cluster_of(directory)) is not None}
    if len(found) > 1:
        raise ConfigError(
            f"the log directories belong to different clusters ({', '.join(found)}): "
            "name those of one broker"
        )
    # An empty tree needs the logs' cluster id, because with a new id, the broker would reject its
    # own logs.
    if store.was_new and found:
        cluster = layout.CLUSTER_ID.rpartition("/")[0]
        await store.commit(
            [Create(cluster), Create(layout.CLUSTER_ID, layout.encode_cluster_id(*found))]
        )


def _report(
    store: EmbeddedStore, directories: Sequence[Path], kept: Sequence[Path]
) -> Iterator[str]:
    topics = store.tree.read(layout.TOPICS)
    count = 0 if topics is None else len(topics.children)
    yield (
        f"The metadata in {', '.join(map(str, directories))} can be read: the last "
        f"commit is {store.tree.zxid}, with {counted(count, 'topic')}."
    )
    for path in kept:
        yield f"The damaged file is kept as {path}."


def lock_directory(directory: Path) -> Lock:
    """Lock a log directory against use by a broker. Raises ConfigError if a broker is using it."""
    try:
        return OsFiles().lock(directory / LOCK_NAME)
    except BlockingIOError as cause:
        raise ConfigError(f"{directory} is in use by a running broker; stop it first") from cause


def cluster_of(directory: Path) -> str | None:
    """Return the cluster id of a log directory, if it has one."""
    meta = directory / META_NAME
    if not meta.exists():
        return None
    return parse_properties(meta.read_text(errors="replace")).get("cluster.id")
