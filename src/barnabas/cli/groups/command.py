"""Implements `barnabas groups`, like `kafka-consumer-groups.sh`.

`reset-offsets` is in `reset_command`, and `watch` in `lag_command`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence

import click

from barnabas.cli.complaint import complain
from barnabas.cli.connection import bootstrap_server, client_options
from barnabas.cli.group import command_group
from barnabas.cli.groups.import_command import import_zookeeper
from barnabas.cli.groups.lag_command import Judging, judging, lag_for, watch
from barnabas.cli.groups.lag_text import lag_text, lag_values
from barnabas.cli.groups.lookup import look_up, partition_numbers
from barnabas.cli.groups.names import GroupNames, group_names, topic_selections
from barnabas.cli.groups.reset_command import reset_offsets
from barnabas.cli.groups.reset_plan import select_partitions, selection
from barnabas.cli.groups.rows import STATES, DescribedGroup
from barnabas.cli.groups.text import (
    describe_values,
    events_text,
    list_text,
    list_values,
    members_text,
    offsets_text,
    remark,
    state_text,
)
from barnabas.cli.main import EXIT_FAILURE, EXIT_OK
from barnabas.cli.options import Duration, as_json, run_client
from barnabas.cli.terminal import for_terminal, printable_lines
from barnabas.cli.waiting import soon
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.group_admin import GroupDescription, GroupListing
from barnabas.client.lag.group_lag import GroupLag
from barnabas.client.lag.readings import DEAD
from barnabas.counted import counted
from barnabas.errors import KafkaError

_ANY = "any"
_TYPES = ("Classic", "Consumer")


@command_group()
def groups() -> None:
    """List, describe, watch, reset and delete consumer groups.

    \b
    Examples:
      barnabas groups list --state
      barnabas groups describe orders
      barnabas groups describe orders --events
      barnabas groups describe orders --lag
      barnabas groups watch orders
      barnabas groups reset-offsets orders --topic orders --to-earliest
      barnabas groups delete orders
    """


groups.add_command(reset_offsets)
groups.add_command(import_zookeeper)
groups.add_command(watch)


@groups.command("list")
@click.option(
    "--state",
    is_flag=False,
    flag_value=_ANY,
    metavar="[STATE,...]",
    help="Show states as well, or only groups in one of these states.",
)
@click.option(
    "--type",
    "group_type",
    is_flag=False,
    flag_value=_ANY,
    metavar="[TYPE,...]",
    help="Show types as well, or only groups of one of these types.",
)
@as_json
@bootstrap_server
def list_(state: str | None, group_type: str | None, as_json: bool, servers: str) -> None:
    """List the groups, one per line; on a terminal, in a table with their states and lags.

    \b
    Examples:
      barnabas groups list
      barnabas groups list --state
      barnabas groups list --state Stable,Empty --json
    """
    states = _filter("--state", state, STATES)
    types = _filter("--type", group_type, _TYPES)

    is_table = not as_json and sys.stdout.isatty()

    async def work() -> tuple[list[GroupListing], dict[str, DescribedGroup]]:
        async with Admin(servers, **client_options()) as admin:
            found = await admin.list_groups(states=states, types=types)
            # Members and lags take several requests per group, so they are shown only on a
            # terminal.
            return found, await soon(_describe_all(admin, found), {}) if is_table else {}

    found, described = run_client(work())
    if is_table:
        from barnabas.cli.groups.tables import show_group_list

        show_group_list(found, described)
    elif as_json:
        click.echo(json.dumps(list_values(found), indent=2))
    else:
        with_type, with_state = group_type is not None, state is not None
        text = list_text(found, with_type=with_type, with_state=with_state)
        click.echo(text, nl=False)


@groups.command()
@group_names
@click.option(
    "--offsets",
    "what",
    flag_value="offsets",
    default=True,
    help="Its offsets and lag: the default.",
)
@click.option("--members", "what", flag_value="members", help="Its members.")
@click.option("--state", "what", flag_value="state", help="Its coordinator and state.")
@click.option(
    "--events", "what", flag_value="events", help="Its last rebalances and their reasons."
)
@click.option(
    "--lag",
    "what",
    flag_value="lag",
    help="Its lag in records and in seconds, with its trend and the time to catch up.",
)
@click.option("--verbose", is_flag=True, help="With --members: the partitions of each.")
@click.option(
    "--for",
    "watched_s",
    type=Duration(),
    default="10s",
    show_default=True,
    metavar="TIME",
    help="With --lag: how long to watch for a trend; shorter if nothing is behind.",
)
@judging()
@as_json
@bootstrap_server
def describe(  # noqa: PLR0913  (a command's parameters are its options)
    names: GroupNames,
    what: str,
    verbose: bool,
    watched_s: float,
    isolation_level: str,
    stuck_after_s: float,
    most: int,
    as_json: bool,
    servers: str,
) -> int:
    """Show the offsets, members, state, rebalances or lag of groups, or of all groups if none is
    named.

    The lag of a partition without a committed offset includes all its records. On a terminal, the
    output is a table; in a pipe or a file, it consists of the lines that Kafka prints. --json shows
    everything.

    \b
    Examples:
      barnabas groups describe orders
      barnabas groups describe --group orders --members --verbose
      barnabas groups describe --all-groups --state
      barnabas groups describe orders --events
      barnabas groups describe orders --lag --for 30s
      barnabas groups describe orders --json
    """
    if what == "lag":
        judged = Judging(isolation_level, stuck_after_s, most)
        lags = run_client(lag_for(servers, names, judged, watched_s), "a trend")
        return _show_lags(lags, as_json)
    with_events, with_offsets = what == "events", as_json or what == "offsets"

    async def work() -> list[DescribedGroup]:
        async with Admin(servers, **client_options()) as admin:
            found = await admin.describe_groups(await names.of(admin), include_events=with_events)
            if with_offsets:
                return await look_up(admin, list(found.values()))
            return [DescribedGroup(group, {}, []) for group in found.values()]

    described = run_client(work())
    # Brokers describe a nonexistent group as Dead, without an error.
    there = [each for each in described if each.group.state != DEAD]
    if as_json:
        click.echo(json.dumps([describe_values(each, with_events) for each in there], indent=2))
    elif sys.stdout.isatty():
        from barnabas.cli.groups.tables import show_groups

        show_groups(there, what, verbose)
    else:
        for each in there:
            _print(each, what, verbose)
    return _complain_of_missing(each.group for each in described)


@groups.command()
@group_names
@bootstrap_server
def delete(names: GroupNames, servers: str) -> int:
    """Delete groups that have no members, including their committed offsets.

    \b
    Examples:
      barnabas groups delete orders
      barnabas groups delete --group orders --group bills
    """
    names.require()

    async def work() -> int:
        outcome = EXIT_OK
        async with Admin(servers, **client_options()) as admin:
            for name in await names.of(admin):
                try:
                    await admin.delete_groups([name])
                    click.echo(f"Deleted group {name}.")
                # If one group cannot be deleted, for example because it has members, still delete
                # the others.
                except KafkaError as error:
                    complain("barnabas groups delete", error)
                    outcome = EXIT_FAILURE
        return outcome

    return run_client(work())


@groups.command("delete-offsets")
@group_names
@topic_selections
@bootstrap_server
def delete_offsets(names: GroupNames, topics: tuple[str, ...], servers: str) -> None:
    """Delete groups' offsets for topics that they no longer read.

    \b
    Examples:
      barnabas groups delete-offsets orders --topic bills
      barnabas groups delete-offsets --group orders --topic bills:0,1
    """
    names.require()
    if not topics:
        raise click.UsageError("name the topics: --topic NAME[:PARTITION,...]")
    selections = [selection(text) for text in topics]

    async def work() -> None:
        async with Admin(servers, **client_options()) as admin:
            existing = await partition_numbers(admin)
            for name in await names.of(admin):
                # Offsets of a deleted topic may still exist.
                known: dict[str, list[int]] = {}
                for topic, number in await admin.list_group_offsets(name):
                    known.setdefault(topic, []).append(number)
                partitions = select_partitions(selections, known | existing)
                await admin.delete_group_offsets(name, partitions)
                deleted = counted(len(partitions), "offset")
                click.echo(f"Deleted {deleted} of group {name}.")

    run_client(work())


def _filter(option: str, text: str | None, known: tuple[str, ...]) -> list[str]:
    """Return the names in a comma-separated list, in Kafka's spelling. If the option has no value,
    return an empty list. Raises UsageError.
    """
    if text is None or text == _ANY:
        return []
    spelling = {name.lower(): name for name in known}
    found = []
    for word in text.split(","):
        name = spelling.get(word.strip().lower())
        if name is None:
            raise click.UsageError(f"{option} {word}: not one of {', '.join(known)}")
        found.append(name)
    return found


def _show_lags(lags: list[GroupLag], as_json: bool) -> int:
    """Show the lag of all existing groups, and return the exit code."""
    there = [lag for lag in lags if lag.group.state != DEAD]
    if as_json:
        click.echo(json.dumps([lag_values(lag) for lag in there], indent=2))
    elif sys.stdout.isatty():
        from barnabas.cli.groups.lag_table import show_lags

        show_lags(there)
    else:
        for lag in there:
            click.echo(lag_text(lag), nl=False)
    return _complain_of_missing(lag.group for lag in lags)


def _complain_of_missing(groups: Iterable[GroupDescription]) -> int:
    """Report any missing groups, and return the exit code."""
    outcome = EXIT_OK
    for group in groups:
        if group.state == DEAD:
            missing = f"Consumer group '{group.group_id}' does not exist"
            advice = "`barnabas groups list` shows which do"
            complain("barnabas groups describe", f"{missing}; {advice}")
            outcome = EXIT_FAILURE
    return outcome


def _print(described: DescribedGroup, what: str, verbose: bool) -> None:
    """Print what Kafka prints, and write any remark to standard error."""
    text = remark(described)
    if text is not None and what != "events":
        click.echo(printable_lines(text), err=True)
    if what == "offsets":
        text = offsets_text(described)
    elif what == "members":
        text = members_text(described, verbose)
    elif what == "state":
        text = state_text(described)
    else:
        text = events_text(described)
    click.echo(for_terminal(text), nl=False)


async def _describe_all(admin: Admin, groups: Sequence[GroupListing]) -> dict[str, DescribedGroup]:
    """Return the members and lags of groups, by group id."""
    found = await admin.describe_groups([each.group_id for each in groups])
    looked_up = await look_up(admin, list(found.values()))
    return {each.group.group_id: each for each in looked_up}
