"""Implements `barnabas alerts`, which evaluates alert rules on a pipeline's tables."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import click

from barnabas.cli.group import command_group
from barnabas.cli.main import EXIT_OK
from barnabas.cli.options import as_json as as_json_option
from barnabas.counted import counted
from barnabas.errors import BarnabasError, ConfigError
from barnabas.printable import printable
from barnabas_pipeline.alerts.conditions import check_kinds, find_incidents
from barnabas_pipeline.alerts.incidents import Incident, Line, lines_of
from barnabas_pipeline.alerts.notices import FIRING, RESOLVED
from barnabas_pipeline.alerts.rules import read_rules
from barnabas_pipeline.alerts.sinks import Notice
from barnabas_pipeline.alerts.watch import Watch, time_of
from barnabas_pipeline.layout import Layout
from barnabas_pipeline.snapshot import Snapshot

EXIT_FIRING: Final = 3
_WITH_LINES: Final = 200
"""The maximum number of incidents for which example lines are looked up, firing ones first."""


@command_group(name="alerts")
def alerts() -> None:
    """Find the incidents that rules describe, and send them.

    \b
    Example:
      barnabas alerts check --rules rules.toml --tables out-logs/tables
    """


@alerts.command()
@click.option(
    "--rules",
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The rules of the alerts, in TOML.",
)
@click.option(
    "--tables",
    required=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="The tables of a pipeline, or of `barnabas report --tables`.",
)
@click.option(
    "--send",
    is_flag=True,
    help=(
        "Send each incident to the sinks of its alert: once when it is found, and once when it "
        "is over."
    ),
)
@as_json_option
def check(rules: Path, tables: Path, send: bool, as_json: bool) -> int:
    """Print incidents, with example lines from the log.

    All times are taken from the log lines, so an incident is firing if it has not ended by the
    newest line. Incidents that have ended are also printed if they ended within the `lookback` of
    the rules.

    Exit codes: 0 if no alert is firing, 3 if one is, 1 if the rules could not be evaluated or an
    incident could not be sent, 2 for a wrong command line.

    \b
    Examples:
      barnabas alerts check --rules rules.toml --tables out-logs/tables
      barnabas alerts check --rules rules.toml --tables out-logs/tables --send --json
    """
    wanted = read_rules(rules)
    # Delta's log requires absolute paths.
    directory = tables.absolute()
    name, layout = _pipeline(directory)
    clock = datetime.now(UTC)
    snapshot = Snapshot(directory, layout)
    if snapshot.control is None:
        raise ConfigError(f"the tables in {tables} have no complete batch yet")
    check_kinds(wanted, name)
    failures: list[str] = []
    sent = 0
    if send:
        evaluation = Watch(wanted, directory, name).evaluate(snapshot, clock)
        found = [each.incident for each in evaluation.known]
        failures, sent = evaluation.failures, evaluation.sent
    else:
        now = time_of(snapshot, clock)
        found = [] if now is None else find_incidents(snapshot, wanted, now)
    firing = sum(each.end is None for each in found)
    found.sort(key=lambda each: each.end is not None)
    shown = [
        (each, lines_of(each, snapshot) if number < _WITH_LINES else [])
        for number, each in enumerate(found)
    ]
    if as_json:
        rows = [Notice(each, _status(each), lines).as_dict() for each, lines in shown]
        click.echo(json.dumps(rows, indent=2))
    else:
        _print(shown)
        over = len(found) - firing
        end = f", {counted(sent, 'notice')} sent" if send else ""
        click.echo(f"{counted(firing, 'incident')} firing, {over:,} over{end}")
    if failures:
        raise BarnabasError(f"not sent, will be retried the next time: {'; '.join(failures)}")
    return EXIT_FIRING if firing else EXIT_OK


def _pipeline(directory: Path) -> tuple[str, Layout]:
    """Return the name and the layout of the pipeline whose tables are in a directory."""
    if (directory / "entries").is_dir():
        from barnabas_pipeline.logs.definition import LOGS

        return "logs", LOGS
    if (directory / "events").is_dir():
        from barnabas_pipeline.behaviour.definition import BEHAVIOUR

        return "behaviour", BEHAVIOUR
    raise ConfigError(
        f"there are no tables in {directory}: give the directory `tables` of a pipeline's output,"
        " or the one that `barnabas report --tables` filled"
    )


def _status(incident: Incident) -> str:
    return FIRING if incident.end is None else RESOLVED


def _print(shown: list[tuple[Incident, list[Line]]]) -> None:
    for each, lines in shown:
        began = each.start.strftime("%Y-%m-%d %H:%M:%S")
        end = "" if each.end is None else each.end.strftime(" to %Y-%m-%d %H:%M:%S")
        # The summary quotes log text, which may contain control characters.
        what = printable(each.summary)
        click.echo(f"{'FIRING' if each.end is None else 'over':<7}{each.alert}: {what}")
        click.echo(f"       {began}{end} UTC, incident {each.id}")
        for line in lines:
            click.echo(f"       | {printable(line.place) + ': ' if line.place else ''}{line.text}")
