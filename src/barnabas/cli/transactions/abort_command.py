"""Implements `barnabas transactions abort`, through the coordinator or in a single partition."""

from __future__ import annotations

from typing import NamedTuple

import click

from barnabas.cli.completion import topic_names
from barnabas.cli.connection import bootstrap_server, client_options
from barnabas.cli.options import INT32, INT64, run_client
from barnabas.client.admin.admin import Admin
from barnabas.errors import BarnabasError
from barnabas.types import TopicPartition


class NoTransaction(BarnabasError):
    """Raised if there is no open transaction to abort."""


class _Numbers(NamedTuple):
    """Holds the transaction's producer, and the coordinator epoch of the marker."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int


@click.command()
@click.option("--topic", metavar="NAME", shell_complete=topic_names)
@click.option("--partition", type=INT32, metavar="N")
@click.option("--start-offset", type=INT64, metavar="N", help="The transaction's first offset.")
@click.option(
    "--producer-id", type=INT64, metavar="ID", help=("The producer; instead of --start-offset.")
)
@click.option("--producer-epoch", type=click.IntRange(0, 2**15 - 1), metavar="N", help="Its epoch.")
@click.option(
    "--coordinator-epoch",
    type=click.IntRange(-1, 2**31 - 1),
    metavar="N",
    help=("The coordinator epoch of the marker."),
)
@click.option("--transactional-id", metavar="ID", help="Fence this id's producer instead.")
@bootstrap_server
def abort(
    topic: str | None,
    partition: int | None,
    start_offset: int | None,
    transactional_id: str | None,
    servers: str,
    **numbers: int | None,
) -> None:
    """Abort a whole transaction by its id, or a hanging one in one partition.

    With --transactional-id, the coordinator aborts the transaction as if a new producer had started
    with that id: the running producer is fenced. With --topic and --partition, the marker is
    written without the coordinator; use this only for transactions that find-hanging shows.

    \b
    Examples:
      barnabas transactions abort --transactional-id orders-copy
      barnabas transactions abort --topic orders --partition 0 --start-offset 42
    """
    if transactional_id is not None:
        if any(value is not None for value in (topic, partition, start_offset, *numbers.values())):
            raise click.UsageError(
                "--transactional-id cannot be combined with other options of this command"
            )
        run_client(_fence(servers, transactional_id))
        click.echo(f"Fenced {transactional_id}: its open transaction, if any, is aborted.")
        return
    if topic is None or partition is None:
        raise click.UsageError(
            "name the transaction: --topic and --partition, or --transactional-id"
        )
    # The first offset is enough to find all three numbers. Without it, all three must be given.
    which = _which(start_offset, numbers)
    name = TopicPartition(topic, partition)

    async def work() -> _Numbers:
        async with Admin(servers, **client_options()) as admin:
            await admin.describe_topics([topic])  # fails fast for an unknown topic
            found = await _at(admin, name, which) if isinstance(which, int) else which
            await admin.abort_transaction(name, *found)
            return found

    click.echo(f"Aborted the transaction of producer {run_client(work()).producer_id} in {name}.")


def _which(start_offset: int | None, numbers: dict[str, int | None]) -> int | _Numbers:
    """Return the transaction's first offset, or its numbers. Raises UsageError."""
    given = [value for value in numbers.values() if value is not None]
    if start_offset is not None:
        if given:
            raise click.UsageError(
                "--start-offset already identifies the producer and its epochs: leave out the "
                "others"
            )
        return start_offset
    if len(given) != len(_Numbers._fields):
        raise click.UsageError(
            "name the transaction: --start-offset, or --producer-id, --producer-epoch and "
            "--coordinator-epoch"
        )
    return _Numbers(**{name: value for name, value in numbers.items() if value is not None})


async def _at(admin: Admin, name: TopicPartition, start_offset: int) -> _Numbers:
    """Return the producer whose open transaction starts at this offset. Raises NoTransaction."""
    for producer in (await admin.describe_producers([name]))[name]:
        if producer.transaction_start_offset == start_offset:
            return _Numbers(
                producer.producer_id, producer.producer_epoch, producer.coordinator_epoch
            )
    raise NoTransaction(
        f"Could not find any open transactions starting at offset {start_offset} "
        f"on partition {name}"
    )


async def _fence(servers: str, transactional_id: str) -> None:
    """Fence an id that exists. Fencing an unknown id would create it."""
    async with Admin(servers, **client_options()) as admin:
        # Raises an error if the id does not exist.
        await admin.describe_transactions([transactional_id])
        await admin.fence_producers([transactional_id])
