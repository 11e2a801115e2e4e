"""Implements `barnabas groups reset-offsets`, which prints a plan and carries it out only with
--execute."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from barnabas.cli.connection import bootstrap_server
from barnabas.cli.groups.instants import BadInstant, duration_ms, instant_ms
from barnabas.cli.groups.names import GroupNames, group_names, topic_selections
from barnabas.cli.groups.reset import ResetRequest, reset
from barnabas.cli.groups.reset_plan import BadReset, Goal, Move, Target, selection
from barnabas.cli.groups.reset_text import plan_file, plan_text, plan_values
from barnabas.cli.options import INT64, as_json, run_client
from barnabas.clock import SystemClock

_SHIFT = click.IntRange(-(2**63), 2**63 - 1)


@click.command("reset-offsets")
@group_names
@topic_selections
@click.option(
    "--all-topics", is_flag=True, help="All topics for which the group has committed offsets."
)
@click.option("--to-earliest", is_flag=True, help="To the first record in the log.")
@click.option("--to-latest", is_flag=True, help="To the end of the log.")
@click.option(
    "--to-current", is_flag=True, help="To the committed offset; with --export, to save it."
)
@click.option(
    "--to-datetime",
    metavar="INSTANT",
    help="Such as 2026-11-21T17:30:00.000, in UTC if it has no offset.",
)
@click.option("--by-duration", metavar="DURATION", help="To this long ago: P1DT12H, PT30M, PT2.5S.")
@click.option("--shift-by", type=_SHIFT, metavar="N", help="N records forward, or back with -N.")
@click.option("--to-offset", type=INT64, metavar="N", help="To this offset.")
@click.option("--from-file", type=click.Path(), metavar="FILE", help="A file that --export wrote.")
@click.option("--execute", is_flag=True, help="Make the change; without it nothing is changed.")
@click.option("--dry-run", is_flag=True, help="Change nothing: the default.")
@click.option("--export", is_flag=True, help="Print the plan as CSV, for --from-file.")
@as_json
@bootstrap_server
def reset_offsets(  # noqa: PLR0913  (a command's parameters are its options)
    names: GroupNames,
    topics: tuple[str, ...],
    all_topics: bool,
    to_earliest: bool,
    to_latest: bool,
    to_current: bool,
    to_datetime: str | None,
    by_duration: str | None,
    shift_by: int | None,
    to_offset: int | None,
    from_file: str | None,
    execute: bool,
    dry_run: bool,
    export: bool,
    as_json: bool,
    servers: str,
) -> None:
    """Reset the offsets of groups that have no members; without --execute, only show the plan.

    An offset outside a partition's log is moved to the nearer end of the log. A group that does not
    exist is created. For each group, either all offsets are changed or none.

    \b
    Examples:
      barnabas groups reset-offsets orders --topic orders --to-earliest
      barnabas groups reset-offsets orders --topic orders:0,1 --shift-by -10 --execute
      barnabas groups reset-offsets orders --all-topics --to-datetime 2026-11-21T08:00:00 --execute
      barnabas groups reset-offsets orders --all-topics --to-current --export > orders.csv
      barnabas groups reset-offsets orders --from-file orders.csv --execute
    """
    names.require()
    if execute and dry_run:
        raise click.UsageError("--execute and --dry-run cannot be combined")
    if export and as_json:
        raise click.UsageError("--export and --json cannot be combined")
    given = {
        "--to-earliest": Target(Goal.EARLIEST) if to_earliest else None,
        "--to-latest": Target(Goal.LATEST) if to_latest else None,
        "--to-current": Target(Goal.CURRENT) if to_current else None,
        "--to-datetime": _time(to_datetime, None),
        "--by-duration": _time(None, by_duration),
        "--shift-by": None if shift_by is None else Target(Goal.SHIFT, shift_by),
        "--to-offset": None if to_offset is None else Target(Goal.OFFSET, to_offset),
    }
    request = _request(names, given, topics, all_topics, from_file)
    moves = run_client(reset(servers, request, execute))
    for move in moves:
        if move.remark is not None:
            click.echo(move.remark, err=True)
    _show(moves, execute, export, as_json)
    if not execute:
        click.echo("This was a dry run: nothing was changed. --execute makes the change.", err=True)


def _time(instant: str | None, ago: str | None) -> Target | None:
    """Return the target of --to-datetime or --by-duration. Raises UsageError."""
    try:
        if instant is not None:
            return Target(Goal.TIME, instant_ms(instant))
        if ago is not None:
            return Target(Goal.TIME, max(SystemClock().wall_ms() - duration_ms(ago), 0))
    except BadInstant as error:
        option = "--by-duration" if instant is None else "--to-datetime"
        raise click.UsageError(f"{option} {error}") from error
    return None


def _request(
    names: GroupNames,
    given: dict[str, Target | None],
    topics: tuple[str, ...],
    all_topics: bool,
    from_file: str | None,
) -> ResetRequest:
    """Return the request that the options describe. Raises UsageError."""
    targets = [target for target in given.values() if target is not None]
    if len(targets) + (from_file is not None) != 1:
        raise click.UsageError(f"choose one of {', '.join(given)} and --from-file")
    if from_file is not None:
        if topics or all_topics:
            raise click.UsageError("--from-file names the partitions: leave out the topics")
        with Path(from_file).open(encoding="utf-8", errors="replace", newline="") as file:
            return ResetRequest(names, None, [], file.read())
    if bool(topics) == all_topics:
        raise click.UsageError("name the partitions: --topic NAME[:PARTITION,...] or --all-topics")
    try:
        return ResetRequest(names, targets[0], [selection(text) for text in topics], None)
    except BadReset as error:
        raise click.UsageError(str(error)) from error


def _show(moves: list[Move], execute: bool, export: bool, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(plan_values(moves, execute), indent=2))
    elif export:
        click.echo(plan_file(moves), nl=False)
    elif sys.stdout.isatty():
        from barnabas.cli.groups.tables import show_plan

        show_plan(moves)
    else:
        click.echo(plan_text(moves), nl=False)
