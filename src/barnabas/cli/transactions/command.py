"""Implements `barnabas transactions`, which works like `kafka-transactions.sh`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import Any

import click

from barnabas.cli.completion import topic_names
from barnabas.cli.connection import bootstrap_server, client_options
from barnabas.cli.group import command_group
from barnabas.cli.options import INT32, INT64, as_json, run_client
from barnabas.cli.terminal import for_terminal
from barnabas.cli.transactions.abort_command import abort
from barnabas.cli.transactions.hanging import OpenTransaction, hanging, suspects
from barnabas.cli.transactions.text import (
    description_text,
    description_values,
    hanging_text,
    hanging_values,
    listing_text,
    listing_values,
    producer_values,
    producers_text,
)
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.transaction_admin import (
    ProducerState,
    TransactionDescription,
    TransactionListing,
)
from barnabas.clock import SystemClock
from barnabas.errors import TransactionalIdNotFound
from barnabas.types import TopicPartition

_STATES = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "PrepareEpochFence",
    "Dead",
)
_OPEN = ("Ongoing", "PrepareCommit", "PrepareAbort")
_topic = click.option("--topic", required=True, metavar="NAME", shell_complete=topic_names)
_partition = click.option("--partition", type=INT32, required=True, metavar="N")


@command_group()
def transactions() -> None:
    """List and describe transactions, and abort hanging ones.

    \b
    Examples:
      barnabas transactions list --state Ongoing
      barnabas transactions describe orders-copy
      barnabas transactions find-hanging
      barnabas transactions abort --topic orders --partition 0 --start-offset 42
    """


transactions.add_command(abort)


@transactions.command("list")
@click.option(
    "--state",
    "states",
    type=click.Choice(_STATES, case_sensitive=False),
    multiple=True,
    help="Only transactions in this state; may be repeated.",
)
@click.option(
    "--producer-id",
    "producer_ids",
    type=INT64,
    multiple=True,
    metavar="ID",
    help="Only transactions of this producer.",
)
@click.option(
    "--duration-filter",
    type=INT64,
    metavar="MS",
    help=("Only transactions open for longer than this."),
)
@as_json
@bootstrap_server
def list_(
    states: tuple[str, ...],
    producer_ids: tuple[int, ...],
    duration_filter: int | None,
    as_json: bool,
    servers: str,
) -> None:
    """List the cluster's transactional ids.

    \b
    Examples:
      barnabas transactions list
      barnabas transactions list --state Ongoing --duration-filter 60000
      barnabas transactions list --json
    """
    longer_than_ms = -1 if duration_filter is None else duration_filter

    async def work() -> list[TransactionListing]:
        async with Admin(servers, **client_options()) as admin:
            try:
                return await admin.list_transactions(
                    states=states, producer_ids=producer_ids, longer_than_ms=longer_than_ms
                )
            except ValueError as error:  # the brokers are too old to filter by this
                raise click.UsageError(str(error)) from error

    found = run_client(work())
    if not as_json and sys.stdout.isatty():
        _show_table(found)
        return
    _show(listing_values(found) if as_json else listing_text(found))


@transactions.command()
@click.argument("names", nargs=-1, metavar="[ID]...")
@click.option("--transactional-id", "named", multiple=True, metavar="ID", help="The same as ID.")
@as_json
@bootstrap_server
def describe(names: tuple[str, ...], named: tuple[str, ...], as_json: bool, servers: str) -> None:
    """Show the state of transactions according to their coordinators, and their partitions.

    \b
    Examples:
      barnabas transactions describe orders-copy
      barnabas transactions describe --transactional-id orders-copy --json
    """
    wanted = list(dict.fromkeys(names + named))
    if not wanted:
        raise click.UsageError("name a transactional id")

    async def work() -> list[TransactionDescription]:
        async with Admin(servers, **client_options()) as admin:
            return list((await admin.describe_transactions(wanted)).values())

    found, now_ms = run_client(work()), SystemClock().wall_ms()
    _show(description_values(found, now_ms) if as_json else description_text(found, now_ms))


@transactions.command("describe-producers")
@_topic
@_partition
@as_json
@bootstrap_server
def describe_producers(topic: str, partition: int, as_json: bool, servers: str) -> None:
    """Show the known producers of a partition, and where their transactions began.

    \b
    Examples:
      barnabas transactions describe-producers --topic orders --partition 0
    """
    name = TopicPartition(topic, partition)

    async def work() -> tuple[ProducerState, ...]:
        async with Admin(servers, **client_options()) as admin:
            await admin.describe_topics([topic])  # fails fast for an unknown topic
            return (await admin.describe_producers([name]))[name]

    found = run_client(work())
    _show(producer_values(found) if as_json else producers_text(found))


@transactions.command("find-hanging")
@click.option("--topic", metavar="NAME", shell_complete=topic_names, help="Only in this topic.")
@click.option("--partition", type=INT32, metavar="N", help="Only in this partition of it.")
@click.option(
    "--broker-id", type=INT32, metavar="ID", help="Only partitions that this broker leads."
)
@click.option(
    "--max-transaction-timeout",
    type=click.IntRange(0, 2**31 - 1),
    default=15,
    show_default=True,
    metavar="MINUTES",
    help="Only transactions without a write for longer than this.",
)
@as_json
@bootstrap_server
def find_hanging(
    topic: str | None,
    partition: int | None,
    broker_id: int | None,
    max_transaction_timeout: int,
    as_json: bool,
    servers: str,
) -> None:
    """Find hanging transactions, which are open in a partition but unknown to their coordinator.

    Nothing will ever end them, and read_committed consumers stop at their first offset. Use `abort`
    to abort them.

    \b
    Examples:
      barnabas transactions find-hanging
      barnabas transactions find-hanging --topic orders --partition 0
    """
    if partition is not None and topic is None:
        raise click.UsageError("--partition needs --topic")
    now_ms = SystemClock().wall_ms()
    silent_since_ms = now_ms - max_transaction_timeout * 60_000

    async def work() -> list[OpenTransaction]:
        async with Admin(servers, **client_options()) as admin:
            described = await admin.describe_topics(None if topic is None else [topic])
            names = [
                TopicPartition(each.name, own.partition)
                for each in described
                for own in each.partitions
                # Only the leader of a partition knows its open transactions.
                if own.leader >= 0
                and (partition is None or own.partition == partition)
                and (broker_id is None or own.leader == broker_id)
            ]
            return await _hanging(admin, names, silent_since_ms)

    found = run_client(work())
    _show(hanging_values(found) if as_json else hanging_text(found, now_ms))


async def _hanging(
    admin: Admin, names: list[TopicPartition], silent_since_ms: int
) -> list[OpenTransaction]:
    """Query the partitions, then the coordinators, then the partitions again. A transaction that
    has just ended is unknown to its coordinator, but it is not hanging.
    """
    candidates = suspects(await admin.describe_producers(names), silent_since_ms)
    if not candidates:
        return []
    listed = await admin.list_transactions(
        producer_ids={candidate.producer.producer_id for candidate in candidates}
    )
    known: list[TransactionDescription] = []
    for each in listed:
        try:
            known += (await admin.describe_transactions([each.transactional_id])).values()
        except TransactionalIdNotFound:
            continue  # it expired after it was listed
    found = hanging(candidates, known)
    # A transaction may have ended normally between the two requests.
    again = await admin.describe_producers({each.partition for each in found})
    still = set(suspects(again, silent_since_ms))
    return [each for each in found if each in still]


def _show_table(listings: Iterable[TransactionListing]) -> None:
    """Print a table of the ids on a terminal, with open transactions highlighted."""
    from rich.console import Console
    from rich.text import Text

    from barnabas.cli.terminal_table import Cells, outside_text, show_table

    rows: list[Cells] = [
        [
            outside_text(each.transactional_id),
            Text(each.state, style="yellow" if each.state in _OPEN else ""),
            str(each.coordinator_id),
            str(each.producer_id),
        ]
        for each in listings
    ]
    titles = ("transactional id", "state", ">coordinator", ">producer id")
    show_table(Console(highlight=False), titles, rows, "No transactional ids.")


def _show(what: str | list[dict[str, Any]]) -> None:
    if isinstance(what, str):
        click.echo(for_terminal(what), nl=False)
    else:
        click.echo(json.dumps(what, indent=2))
