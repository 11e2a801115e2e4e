"""Implements `kafka-consumer-groups.sh --reset-offsets`, which plans new offsets and commits them
with --execute.

The plan and its limits are the same as in `barnabas groups reset-offsets`, but the output is
Kafka's.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import click

from barnabas.cli.groups.instants import BadInstant, duration_ms, instant_ms
from barnabas.cli.groups.names import GroupNames
from barnabas.cli.groups.reset import ResetRequest, reset
from barnabas.cli.groups.reset_plan import BadReset, Goal, Move, Target, selection
from barnabas.cli.groups.reset_text import plan_file
from barnabas.cli.groups.rows import EMPTY
from barnabas.cli.kafka.options import BadCommandLine, Given
from barnabas.cli.kafka.tool import Line, flag_words, option_words, servers
from barnabas.cli.options import run_client
from barnabas.client.admin.admin import Admin
from barnabas.client.lag.readings import DEAD
from barnabas.clock import SystemClock

TARGETS: Final = (
    "to-offset",
    "to-current",
    "to-datetime",
    "from-file",
    "by-duration",
    "to-earliest",
    "to-latest",
    "shift-by",
)
_DRY_RUN = (
    "WARN: No action will be performed as the --execute option is missing. In a future major "
    "release, the default behavior of this command will be to prompt the user before executing the "
    "reset rather than doing a dry run. You should add the --dry-run option explicitly if you are "
    "scripting this command and want to keep the current default behavior without prompting."
)


def explain_reset(given: Given) -> Line:
    """Return the equivalent options for `barnabas groups reset-offsets`."""
    _request(given, GroupNames((), False))
    line = option_words(given, "topic") + flag_words(given, "all-topics")
    for name in TARGETS:
        line += option_words(given, name) or flag_words(given, name)
    return line + flag_words(given, "execute", "dry-run", "export")


def run_reset(given: Given, names: GroupNames, options: Mapping[str, Any]) -> None:
    """Plan the reset, carry it out with --execute, and print the new offsets."""
    request = _request(given, names)
    executes = "execute" in given
    # The default is a dry run; Kafka warns that this may change.
    if not executes and "dry-run" not in given and "export" not in given:
        click.echo(_DRY_RUN, err=True)
    address = servers(given)
    moves = run_client(_reset(address, request, executes, options))
    for move in moves:
        if move.remark is not None:
            click.echo(f"WARN {move.remark}", err=True)
    click.echo(f"{plan_file(moves)}" if "export" in given else _plan_text(moves))


def print_error(text: str) -> None:
    """Print an error on standard output, as Kafka does."""
    click.echo(f"\nError: {text}")


async def _reset(
    address: str, request: ResetRequest, executes: bool, options: Mapping[str, Any]
) -> list[Move]:
    """Reset the groups without members, and print an error for each group with members."""
    async with Admin(address, **options) as admin:
        described = await admin.describe_groups(await request.names.of(admin))
    idle = []
    for name, group in described.items():
        # A DEAD group does not exist. As in Kafka, a reset creates it.
        if group.state in (EMPTY, DEAD):
            idle.append(name)
        else:
            print_error(
                f"Assignments can only be reset if the group '{name}' is inactive, but the current "
                f"state is {group.state}."
            )
    if not idle:
        return []
    return await reset(address, request._replace(names=GroupNames(tuple(idle), False)), executes)


def _request(given: Given, names: GroupNames) -> ResetRequest:
    """Return the reset that the options describe. Raises BadCommandLine."""
    given.not_with("execute", "dry-run")
    target = given.one_of(
        *TARGETS,
        complaint="Option '[reset-offsets]' requires one of the following scenarios: "
        f"{', '.join(f'--{name}' for name in TARGETS)}",
    )
    # The file lists topics and partitions, so no scope is required.
    if target == "from-file":
        path = Path(given.text("from-file") or "")
        # newline="" leaves line endings to the csv module.
        with path.open(encoding="utf-8", errors="replace", newline="") as file:
            return ResetRequest(names, None, [], file.read())
    if ("topic" in given) == ("all-topics" in given):
        raise BadCommandLine(
            "Option [reset-offsets] takes one of these options: --all-topics or --topic TOPIC[:N,N]"
        )
    try:
        selections = [selection(text) for text in given.texts("topic")]
        return ResetRequest(names, _target(given, target), selections, None)
    except (BadReset, BadInstant) as error:
        raise BadCommandLine(f"--{target} {error}") from error


def _target(given: Given, name: str) -> Target:
    """Return the target. Raises BadCommandLine or BadInstant."""
    if name == "to-datetime":
        return Target(Goal.TIME, instant_ms(given.required_text(name)))
    if name == "by-duration":
        ago_ms = duration_ms(given.required_text(name))
        # As in Kafka, use this machine's clock, because the request contains an instant, not a
        # duration.
        return Target(Goal.TIME, max(SystemClock().wall_ms() - ago_ms, 0))
    if name == "to-offset":
        return Target(Goal.OFFSET, given.number(name, 0, 2**63 - 1) or 0)
    if name == "shift-by":
        return Target(Goal.SHIFT, given.number(name, -(2**63), 2**63 - 1) or 0)
    goals = {"to-earliest": Goal.EARLIEST, "to-latest": Goal.LATEST, "to-current": Goal.CURRENT}
    return Target(goals[name])


def _plan_text(moves: list[Move]) -> str:
    """Return the table that Kafka prints, with a line for each partition."""
    rows = [("GROUP", "TOPIC", "PARTITION", "NEW-OFFSET")]
    rows += [
        (move.group_id, move.partition.topic, str(move.partition.partition), str(move.after))
        for move in moves
    ]
    return "".join(
        f"\n{group:<30} {topic:<30} {partition:<10} {offset:<15}"
        for group, topic, partition, offset in rows
    )
