"""Implements `barnabas metadata secure`, which sets the rights of a tree in ZooKeeper (SE-6)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from barnabas.cli.metadata.tree_source import TreeSource, tree_source
from barnabas.cluster.exporting import CLUSTER_TOPS, ZOOKEEPERS_OWN, nodes_below
from barnabas.config.zookeeper_keys import hosts_and_chroot
from barnabas.counted import counted
from barnabas.errors import ConfigError

if TYPE_CHECKING:
    from barnabas.cluster.zookeeper import ZooKeeperStore
    from barnabas.cluster.zookeeper_settings import Settings

_READ_ONLY: Final = "/zookeeper/config"  # only for ZooKeeper's administrator


@click.command()
@tree_source
@click.option("--undo", is_flag=True, help="Open the tree to all clients again.")
def secure(source: TreeSource, undo: bool) -> None:
    """Set the access rights of an existing tree to those that a broker with zookeeper.set.acl=true
    sets.

    Afterwards, only clients with the brokers' credentials may change the tree, or read users and
    brokers' configs. Set zookeeper.set.acl on all brokers first, so that nodes which they create in
    the meantime are also protected. The credentials are read from the brokers' configuration:
    --config FILE, with barnabas.zookeeper.credentials or a certificate.

    \b
    Examples:
      barnabas metadata secure --config server.properties
      barnabas metadata secure --config server.properties --undo
    """
    settings = source.required_zookeeper()
    if not settings.has_identity:
        raise ConfigError(
            "the brokers' credentials are needed, because they will own the nodes: --config FILE "
            "with barnabas.zookeeper.credentials=user:password, or zookeeper.ssl.keystore.location"
        )
    nodes, others = asyncio.run(set_rights(settings, is_protected=not undo))
    state = "open to all" if undo else "protected"
    click.echo(f"{counted(nodes, 'node')} of {settings.connect}: {state}.")
    if others and not undo:
        click.echo(
            f"The root stays open, because other programs have nodes there ({', '.join(others)}): "
            "every client can delete /controller. Move the cluster below a chroot, or close the "
            "root in ZooKeeper.",
            err=True,
        )


class Done(NamedTuple):
    """Holds the number of nodes changed, and the nodes of other programs in the root."""

    nodes: int
    others: list[str]


async def set_rights(settings: Settings, *, is_protected: bool) -> Done:
    """Set the rights of each node after those of its children. If a node appears under a protected
    one, only a broker can then have created it. Raises ConfigError or MetadataError. The root is
    included if it is the chroot or contains no other programs' nodes. If it were left open, any
    client could delete /controller in it.
    """
    async with _open_store(settings) as store:
        paths = list(await nodes_below(store, CLUSTER_TOPS))
        if not paths:
            raise ConfigError(f"{settings.connect} has no metadata of a cluster; check the chroot")
        others: list[str] = []
        if not hosts_and_chroot(settings.connect)[1]:
            root = await store.read("/")
            names = {f"/{name}" for name in (root.children if root is not None else ())}
            others = sorted(names - {*CLUSTER_TOPS, ZOOKEEPERS_OWN})
        if not others:
            # Put the root first, so that it is set last, because the order is reversed below.
            paths.insert(0, "/")
        return Done(await _set_each(store, paths, is_protected=is_protected), others)


async def close_server(settings: Settings) -> None:
    """Make the brokers the owners of all nodes in a ZooKeeper that only this cluster uses. This
    does nothing if the root is already closed, because it must have been closed before the brokers
    created any node. Raises ConfigError or MetadataError.
    """
    async with _open_store(settings) as store:
        if await store.is_open_to_all("/"):
            paths = ["/", *await nodes_below(store, (*CLUSTER_TOPS, ZOOKEEPERS_OWN))]
            await _set_each(
                store, [path for path in paths if path != _READ_ONLY], is_protected=True
            )


@asynccontextmanager
async def _open_store(settings: Settings) -> AsyncIterator[ZooKeeperStore]:
    from barnabas.cluster.zookeeper import ZooKeeperStore  # slow to import

    store = await ZooKeeperStore.open(settings, makes_chroot=False)
    try:
        yield store
    finally:
        await store.close()


async def _set_each(store: ZooKeeperStore, paths: list[str], *, is_protected: bool) -> int:
    return sum([await store.set_rights(path, is_protected=is_protected) for path in paths[::-1]])
