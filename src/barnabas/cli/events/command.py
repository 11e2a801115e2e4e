"""Implements `barnabas events`, which shows what brokers decided, and why. Kafka has no such
tool."""

from __future__ import annotations

import asyncio
import json
import re
import sys

import click

from barnabas.cli.completion import group_ids, topic_names
from barnabas.cli.connection import bootstrap_server, client_options
from barnabas.cli.events.text import Selection, event_lines, event_values
from barnabas.cli.groups.instants import BadInstant, moment_ms
from barnabas.cli.main import EXIT_FAILURE, EXIT_OK
from barnabas.cli.options import INT32, run_client
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.event_admin import BrokerEvents, by_time
from barnabas.clock import SystemClock
from barnabas.events import KINDS

_ANSWER_TIMEOUT_MS = 2_000  # a hung broker must not hide the others
_PAUSE_S = 1.0


@click.command()
@click.option("--follow", is_flag=True, help="Continue with new events, until Ctrl-C.")
@click.option(
    "--topic",
    "topics",
    multiple=True,
    metavar="NAME",
    shell_complete=topic_names,
    help="Only events about this topic; may be repeated.",
)
@click.option(
    "--group",
    "groups",
    multiple=True,
    metavar="NAME",
    shell_complete=group_ids,
    help="Only events about this group; may be repeated.",
)
@click.option(
    "--broker",
    "brokers",
    multiple=True,
    type=INT32,
    metavar="ID",
    help="Only events that this broker reports or that are about it; may be repeated.",
)
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    type=click.Choice(KINDS),
    metavar="KIND",
    help="Only events of this kind, such as isr-shrink; may be repeated.",
)
@click.option(
    "--all",
    "with_routine",
    is_flag=True,
    help="Also show the routine kinds: leader and follower, compaction and retention.",
)
@click.option(
    "--since",
    metavar="TIME",
    help="Only events since this time: 10m (also s, h, d) ago, or an instant such as "
    "2026-11-27T20:15 (UTC).",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
@bootstrap_server
def events(  # noqa: PLR0913  (a command's parameters are its options)
    follow: bool,
    topics: tuple[str, ...],
    groups: tuple[str, ...],
    brokers: tuple[int, ...],
    kinds: tuple[str, ...],
    with_routine: bool,
    since: str | None,
    as_json: bool,
    servers: str,
) -> int:
    """Show what the brokers decided and why, as events with their causes.

    Brokers keep their last 4,096 events until they stop; their logs contain all of them. The events
    of all brokers are merged by time. Kafka's brokers report none.

    \b
    Examples:
      barnabas events
      barnabas events --follow --topic orders
      barnabas events --since 10m --kind isr-shrink --kind election
      barnabas events --group billing --json
    """
    selection = Selection(topics, groups, brokers, kinds, _since_ms(since), with_routine)
    shown = _Shown(selection, as_json)
    return run_client(_run(servers, shown, follow), None if follow else "the brokers' events")


class _Shown:
    """Prints each event once, and each problem with a broker when it first occurs."""

    def __init__(self, selection: Selection, as_json: bool) -> None:
        self.after: dict[int, int] = {}
        self._selection = selection
        self._as_json = as_json
        self._problems: dict[int, str] = {}

    def show(self, reports: dict[int, BrokerEvents]) -> bool:
        """Print the new events, and return whether any broker reports events."""
        for report in reports.values():
            self._complain(report)
            self.after[report.broker_id] = report.after
        for broker_id, event in by_time(reports):
            if not self._selection.has(broker_id, event):
                continue
            if self._as_json:
                click.echo(json.dumps(event_values(broker_id, event)))
            else:
                for line in event_lines(broker_id, event):
                    click.echo(line)
        sys.stdout.flush()
        return any(report.problem is None for report in reports.values())

    def _complain(self, report: BrokerEvents) -> None:
        problem = report.problem
        if problem is None:
            self._problems.pop(report.broker_id, None)
        elif self._problems.get(report.broker_id) != problem:
            self._problems[report.broker_id] = problem
            click.echo(problem, err=True)
        if report.has_gap:
            gap = (
                f"broker {report.broker_id} restarted, or has discarded some of the events before "
                "these"
            )
            click.echo(gap, err=True)


async def _run(servers: str, shown: _Shown, follow: bool) -> int:
    options = {"request_timeout_ms": _ANSWER_TIMEOUT_MS, **client_options()}
    async with Admin(servers, **options) as admin:
        has_any = shown.show(await admin.events())
        while follow:
            await asyncio.sleep(_PAUSE_S)
            shown.show(await admin.events(shown.after))
    return EXIT_OK if has_any else EXIT_FAILURE


def _since_ms(since: str | None) -> int:
    if since is None:
        return 0
    ago = f"-{since}" if re.fullmatch(r"\d{1,9}(ms|s|m|h|d|w)", since) else since
    try:
        return moment_ms(ago, SystemClock().wall_ms())
    except BadInstant:
        raise click.UsageError(
            f"--since {since}: not a time, such as 10m (ten minutes ago; also s, h, d) or "
            "2026-11-27T20:15 (UTC)"
        ) from None
