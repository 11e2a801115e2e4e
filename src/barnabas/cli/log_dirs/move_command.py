"""Implements `barnabas log-dirs move`, which moves a broker's replicas to another of its log
directories."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence

import click

from barnabas.cli.complaint import complain
from barnabas.cli.completion import topic_names
from barnabas.cli.connection import bootstrap_server, client_options
from barnabas.cli.groups.reset_plan import BadReset, Selection, select_partitions, selection
from barnabas.cli.main import EXIT_FAILURE, EXIT_OK
from barnabas.cli.options import INT32, run_client
from barnabas.cli.waiting import Waiting
from barnabas.client.admin.admin import Admin, LogDirDescription
from barnabas.counted import counted
from barnabas.types import TopicPartition

_WHO = "barnabas log-dirs move"
_LOOK_EVERY_S = 0.5


@click.command()
@click.argument(
    "topics", nargs=-1, required=True, metavar="NAME[:0,1]...", shell_complete=topic_names
)
@click.option("--to", "path", required=True, metavar="PATH", help="A log directory of the broker.")
@click.option(
    "--broker", "broker_id", type=INT32, metavar="ID", help="Optional if there is only one broker."
)
@click.option("--wait", is_flag=True, help="Wait until all replicas have been moved.")
@bootstrap_server
def move(
    topics: tuple[str, ...], path: str, broker_id: int | None, wait: bool, servers: str
) -> int:
    """Move replicas to another log directory of their broker, while they are being served.

    Specify topics to move all of their replicas on the broker, or specify only some partitions. The
    move continues after the broker is restarted; `log-dirs describe` shows its progress. To cancel
    a move, move the replica to its current directory.

    \b
    Examples:
      barnabas log-dirs move orders --to /disk2/kafka
      barnabas log-dirs move orders:0,3 payments --broker 1 --to /disk2/kafka --wait
    """
    try:
        wanted = [selection(text) for text in topics]
    except BadReset as error:
        raise click.UsageError(str(error)) from error
    return run_client(_move(servers, wanted, broker_id, path, wait=wait))


async def _move(
    servers: str, wanted: Sequence[Selection], broker_id: int | None, path: str, *, wait: bool
) -> int:
    async with Admin(servers, **client_options()) as admin:
        directories = await admin.describe_log_dirs()
        broker = _broker(directories, broker_id)
        # Without this check, the broker would reject the move of each replica with
        # LOG_DIR_NOT_FOUND.
        _check_directory(broker, path, directories[broker])
        names = await _names(admin, wanted, broker)
        outcomes = await admin.alter_replica_log_dirs(broker, dict.fromkeys(names, path))
        failed = {name: error for name, error in outcomes.items() if error is not None}
        for name, error in sorted(failed.items()):
            complain(_WHO, f"{name}: {error} ({error.name})")
        moving = sorted(outcomes.keys() - failed.keys())
        if moving and not wait:
            click.echo(f"moving to {path} on broker {broker}: {_join(moving)}")
        elif moving:
            moved = await _wait_for_move(admin, broker, path, moving)
            if moved:
                click.echo(f"moved to {path} on broker {broker}: {_join(moved)}")
            for name in sorted(set(moving) - set(moved)):
                complain(_WHO, f"{name}: the move was abandoned; see the log of broker {broker}")
            return EXIT_FAILURE if failed or len(moved) < len(moving) else EXIT_OK
    return EXIT_FAILURE if failed else EXIT_OK


def _broker(found: Mapping[int, object], broker_id: int | None) -> int:
    known = ", ".join(map(str, found))
    if broker_id is None:
        if len(found) != 1:
            raise click.UsageError(f"name one of the brokers with --broker: {known}")
        return next(iter(found))
    if broker_id not in found:
        raise click.UsageError(
            f"--broker {broker_id}: this broker is not alive; the live brokers are {known}"
        )
    return broker_id


def _check_directory(broker: int, path: str, found: Collection[LogDirDescription]) -> None:
    paths = [each.path for each in found]
    if path not in paths:
        raise click.UsageError(
            f"--to {path}: broker {broker} has no such log directory; it has {', '.join(paths)}"
        )


async def _names(admin: Admin, wanted: Sequence[Selection], broker: int) -> list[TopicPartition]:
    """Return the partitions. For a whole topic, these are the partitions with a replica on the
    broker. Raises BadReset if a partition does not exist.
    """
    described = await admin.describe_topics([each.topic for each in wanted])
    partitions = {topic.name: topic.partitions for topic in described}
    there = {name: [each.partition for each in some] for name, some in partitions.items()}
    names = set(select_partitions([each for each in wanted if each.partitions is not None], there))
    for each in wanted:
        if each.partitions is None:
            names.update(
                TopicPartition(each.topic, partition.partition)
                for partition in partitions[each.topic]
                # For a whole topic, skip partitions without a replica on the broker.
                if broker in partition.replicas
            )
    if not names:
        raise click.UsageError(f"broker {broker} has no replica of these topics")
    return sorted(names)


async def _wait_for_move(
    admin: Admin, broker: int, path: str, names: Collection[TopicPartition]
) -> list[TopicPartition]:
    """Wait until no replica is moving, and return those that arrived."""
    with Waiting(f"broker {broker} to move {counted(len(names), 'replica')}"):
        while True:
            found = (await admin.describe_log_dirs()).get(broker, ())
            replicas = {each.path: each.replicas for each in found}.get(path, {})
            here = {name: replicas[name].is_future for name in names if name in replicas}
            # A replica has arrived if it is in the directory and no longer a future one. If it is
            # not in the directory at all, the move was abandoned.
            if not any(here.values()):
                return sorted(here)
            await asyncio.sleep(_LOOK_EVERY_S)


def _join(names: Collection[TopicPartition]) -> str:
    return ", ".join(map(str, names))
