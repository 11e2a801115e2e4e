"""`barnabas groups reset-offsets`: a plan first, and nothing more than that without --execute."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from barnabas.cli.groups.instants import BadInstant, duration_ms, instant_ms
from barnabas.cli.groups.names import GroupNames, group_names, topic_selections
from barnabas.cli.groups.reset import Wish, reset
from barnabas.cli.groups.reset_plan import BadReset, Goal, Move, Target, selection
from barnabas.cli.groups.reset_text import plan_file, plan_text, plan_values
from barnabas.cli.options import INT64, as_json, bootstrap_server, run_client
from barnabas.clock import SystemClock

_SHIFT = click.IntRange(-(2**63), 2**63 - 1)


@click.command("reset-offsets")
@group_names
@topic_selections
@click.option("--all-topics", is_flag=True, help="Wherever the group has committed an offset.")
@click.option("--to-earliest", is_flag=True, help="To the first record that is left.")
@click.option("--to-latest", is_flag=True, help="To the end.")
@click.option("--to-current", is_flag=True, help="To where it is; with --export, to keep that.")
@click.option(
    "--to-datetime", metavar="INSTANT", help="2026-11-21T17:30:00.000, in UTC unless it says more."
)
@click.option("--by-duration", metavar="DURATION", help="So long ago: P1DT12H, PT30M, PT2.5S.")
@click.option("--shift-by", type=_SHIFT, metavar="N", help="N records on, or back with -N.")
@click.option("--to-offset", type=INT64, metavar="N", help="To this offset.")
@click.option("--from-file", type=click.Path(), metavar="FILE", help="As --export has written it.")
@click.option("--execute", is_flag=True, help="Do it; without it nothing is changed.")
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
    """Say where groups without members shall go on; without --execute, only show it.

    An offset outside of a partition's log becomes its nearer end. A group that does not exist is
    made. Nothing is changed unless all of it can be.

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
        raise click.UsageError("--execute and --dry-run contradict each other")
    if export and as_json:
        raise click.UsageError("--export and --json contradict each other")
    given = {
        "--to-earliest": Target(Goal.EARLIEST) if to_earliest else None,
        "--to-latest": Target(Goal.LATEST) if to_latest else None,
        "--to-current": Target(Goal.CURRENT) if to_current else None,
        "--to-datetime": _time(to_datetime, None),
        "--by-duration": _time(None, by_duration),
        "--shift-by": None if shift_by is None else Target(Goal.SHIFT, shift_by),
        "--to-offset": None if to_offset is None else Target(Goal.OFFSET, to_offset),
    }
    wish = _wish(names, given, topics, all_topics, from_file)
    moves = run_client(reset(servers, wish, execute))
    for move in moves:
        if move.remark is not None:
            click.echo(move.remark, err=True)
    _show(moves, execute, export, as_json)
    if not execute:
        click.echo("This was a dry run: nothing is changed. --execute does it.", err=True)


def _time(instant: str | None, ago: str | None) -> Target | None:
    """What --to-datetime or --by-duration means. Raises UsageError."""
    try:
        if instant is not None:
            return Target(Goal.TIME, instant_ms(instant))
        if ago is not None:
            return Target(Goal.TIME, max(SystemClock().wall_ms() - duration_ms(ago), 0))
    except BadInstant as error:
        option = "--by-duration" if instant is None else "--to-datetime"
        raise click.UsageError(f"{option} {error}") from error
    return None


def _wish(
    names: GroupNames,
    given: dict[str, Target | None],
    topics: tuple[str, ...],
    all_topics: bool,
    from_file: str | None,
) -> Wish:
    """All that was asked for, if it fits together. Raises UsageError."""
    targets = [target for target in given.values() if target is not None]
    if len(targets) + (from_file is not None) != 1:
        raise click.UsageError(f"say where to, once: {', '.join(given)} or --from-file")
    if from_file is not None:
        if topics or all_topics:
            raise click.UsageError("--from-file says which partitions: leave out the topics")
        with Path(from_file).open(encoding="utf-8", errors="replace", newline="") as file:
            return Wish(names, None, [], file.read())
    if bool(topics) == all_topics:
        raise click.UsageError("say which partitions: --topic NAME[:PARTITION,...] or --all-topics")
    try:
        return Wish(names, targets[0], [selection(text) for text in topics], None)
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
