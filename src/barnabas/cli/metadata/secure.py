"""`barnabas metadata secure`: the rights of an existing tree in ZooKeeper (SE-6)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import click

from barnabas.cli.counted import counted
from barnabas.cli.metadata.tree_source import TreeSource, tree_source
from barnabas.config.zookeeper_keys import hosts_and_chroot
from barnabas.errors import ConfigError

if TYPE_CHECKING:
    from barnabas.cluster.zookeeper_settings import Settings

_TOPS: Final = (
    "/admin",
    "/brokers",
    "/cluster",
    "/config",
    "/consumers",
    "/controller",
    "/controller_epoch",
    "/delegation_token",
    "/feature",
    "/isr_change_notification",
    "/kafka-acl",
    "/kafka-acl-changes",
    "/kafka-acl-extended",
    "/kafka-acl-extended-changes",
    "/latest_producer_id_block",
    "/log_dir_event_notification",
    "/migration",
)
"""The nodes of a cluster's tree: without a chroot the root has those of other programs as well."""


@click.command()
@tree_source
@click.option("--undo", is_flag=True, help="Open the tree to all again.")
def secure(source: TreeSource, undo: bool) -> None:
    """Set the rights of an existing tree as a broker with zookeeper.set.acl=true creates it.

    Afterwards only who shows the brokers' credentials may change it, or read users and brokers'
    configs. Set zookeeper.set.acl on all brokers before, so that what they create meanwhile is
    protected as well. The credentials come from the brokers' configuration: --config FILE, with
    barnabas.zookeeper.credentials or a certificate.

    \b
    Examples:
      barnabas metadata secure --config server.properties
      barnabas metadata secure --config server.properties --undo
    """
    settings = source.required_zookeeper()
    if not settings.has_identity:
        raise ConfigError(
            "the brokers' credentials are needed, who would own the nodes otherwise: --config FILE "
            "with barnabas.zookeeper.credentials=user:password, or zookeeper.ssl.keystore.location"
        )
    count = asyncio.run(set_rights(settings, is_protected=not undo))
    state = "open to all" if undo else "protected"
    click.echo(f"{counted(count, 'node')} of {settings.connect}: {state}.")


async def set_rights(settings: Settings, *, is_protected: bool) -> int:
    """The number of nodes, each set after those below it: so a node that appears meanwhile below
    one that is protected already was created by a broker."""
    from barnabas.cluster.zookeeper import ZooKeeperStore  # takes a while to import

    store = await ZooKeeperStore.open(settings, makes_chroot=False)
    try:
        paths, level = [], list(_TOPS)
        while level:
            nodes = zip(level, await store.read_many(level), strict=True)
            there = [(path, node) for path, node in nodes if node is not None]
            paths += [path for path, _ in there]
            level = [f"{path}/{name}" for path, node in there for name in node.children]
        if not paths:
            raise ConfigError(f"{settings.connect} has no tree of a cluster; check the chroot")
        if hosts_and_chroot(settings.connect)[1]:
            paths.insert(0, "/")
        done = [await store.set_rights(path, is_protected=is_protected) for path in paths[::-1]]
        return sum(done)
    finally:
        await store.close()
