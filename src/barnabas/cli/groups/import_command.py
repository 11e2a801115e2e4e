"""Implements `barnabas groups import-zookeeper`, for offsets committed by consumers before 0.9
(ZK-7).

Like a reset, it prints a plan, and carries it out only with --execute.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import click

from barnabas.cli.connection import bootstrap_server, client_options
from barnabas.cli.groups.lookup import partition_numbers
from barnabas.cli.groups.names import GroupNames, group_names
from barnabas.cli.groups.reset import ResetRequest, reset
from barnabas.cli.groups.reset_plan import BadReset, Move
from barnabas.cli.groups.reset_text import plan_file, plan_text, plan_values
from barnabas.cli.metadata.tree_source import TreeSource, open_zookeeper, tree_source
from barnabas.cli.options import as_json, run_client
from barnabas.client.admin.admin import Admin
from barnabas.cluster.consumer_offsets import ConsumerOffsets, load_consumer_offsets
from barnabas.counted import counted


@click.command("import-zookeeper")
@group_names
@tree_source
@click.option(
    "--overwrite", is_flag=True, help="Replace offsets that the group has committed since."
)
@click.option("--execute", is_flag=True, help="Make the change; without it nothing is changed.")
@as_json
@bootstrap_server
def import_zookeeper(
    names: GroupNames,
    source: TreeSource,
    overwrite: bool,
    execute: bool,
    as_json: bool,
    servers: str,
) -> None:
    """Import the offsets that consumers before 0.9 committed to ZooKeeper.

    Without names, it imports all groups. An offset outside a partition's log is moved to the nearer
    end of the log. ZooKeeper itself is not changed.

    \b
    Examples:
      barnabas groups import-zookeeper --zookeeper-connect localhost:2181
      barnabas groups import-zookeeper orders --zookeeper-connect localhost:2181/kafka --execute
      barnabas groups import-zookeeper --config server.properties --overwrite --execute
    """
    moves, remarks = run_client(_import(source, names, servers, overwrite, execute))
    for remark in [*remarks, *(move.remark for move in moves if move.remark is not None)]:
        click.echo(remark, err=True)
    if as_json:
        click.echo(json.dumps(plan_values(moves, execute), indent=2))
    else:
        click.echo(plan_text(moves), nl=False)
    if not execute:
        click.echo("This was a dry run: nothing was changed. --execute makes the change.", err=True)


async def _import(
    source: TreeSource, names: GroupNames, servers: str, overwrite: bool, execute: bool
) -> tuple[list[Move], list[str]]:
    """Return the offsets imported or to be imported, and remarks on skipped offsets."""
    wanted = _chosen(await _left_in_zookeeper(source), names)
    remarks = [remark for group in wanted for remark in _remarks(group)]
    async with Admin(servers, **client_options()) as admin:
        topics = await partition_numbers(admin)
        moves = []
        for group in wanted:
            committed = await admin.list_group_offsets(group.group_id)
            for name, offset in group.offsets.items():
                before = committed.get(name)
                # Offsets remain in ZooKeeper after their topic is deleted. The brokers would reject
                # a commit for a deleted topic.
                if name.partition not in topics.get(name.topic, ()):
                    remarks.append(f"{group.group_id}: left out {name}, which does not exist")
                # The group has since committed an offset to Kafka, so the older one would make it
                # read records again.
                elif before is not None and not overwrite:
                    remarks.append(
                        f"{group.group_id}: left out {name}, where it has since "
                        f"committed {before.offset}; --overwrite replaces it with {offset}"
                    )
                else:
                    moves.append(Move(group.group_id, name, None, offset))
    if not moves:
        return [], remarks
    groups = tuple(dict.fromkeys(move.group_id for move in moves))
    # From here on, this is a reset from a file, which moves offsets into the log and rejects active
    # groups.
    request = ResetRequest(GroupNames(groups, False), None, [], plan_file(moves))
    return await reset(servers, request, execute), remarks


async def _left_in_zookeeper(source: TreeSource) -> list[ConsumerOffsets]:
    store = await open_zookeeper(source.required_zookeeper())
    try:
        return await load_consumer_offsets(store)
    finally:
        await store.close()


def _chosen(groups: list[ConsumerOffsets], names: GroupNames) -> list[ConsumerOffsets]:
    """Return the selected groups. Raises BadReset for a group without offsets in ZooKeeper."""
    known = {group.group_id: group for group in groups}
    for name in names.names:
        if name not in known:
            raise BadReset(f"ZooKeeper has no offsets of group {name!r} below /consumers")
    return [known[name] for name in dict.fromkeys(names.names)] if names.names else groups


def _remarks(group: ConsumerOffsets) -> Iterator[str]:
    if group.running:
        yield (
            f"{group.group_id}: {counted(group.running, 'consumer')} still running on ZooKeeper; "
            "offsets committed there from now on are not imported"
        )
    for path in group.unreadable:
        yield f"{group.group_id}: left out {path}, which does not contain a partition's offset"
