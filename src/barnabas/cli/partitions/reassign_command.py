"""Implements `barnabas reassign`, with the files and output of `kafka-reassign-partitions.sh`."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click

from barnabas.cli.complaint import complain
from barnabas.cli.connection import bootstrap_server, client_options
from barnabas.cli.main import EXIT_FAILURE, EXIT_OK
from barnabas.cli.options import run_client
from barnabas.cli.partitions.reassign_log_dirs import (
    LogDirs,
    Replica,
    move_lines,
    places,
    start_moves,
)
from barnabas.cli.partitions.reassign_plan import (
    BadPlan,
    Replicas,
    current,
    moving_lines,
    plan_text,
    propose,
    read_log_dirs,
    read_plan,
    read_topics,
    status_lines,
)
from barnabas.cli.partitions.reassign_throttle import (
    clear,
    clearing_lines,
    moves,
    throttle,
    throttle_log_dirs,
)
from barnabas.client.admin.admin import Admin
from barnabas.errors import ClusterAuthorizationFailed, KafkaError, NoReassignmentInProgress
from barnabas.types import TopicPartition

N = TypeVar("N", TopicPartition, Replica)
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

_WHO = "barnabas reassign"
_ACTIONS = "barnabas.reassign.actions"
_VERIFY = (
    "Warning: You must run --verify periodically, until the reassignment completes, "
    "to ensure the throttle is removed."
)
_file = click.Path(path_type=Path, exists=True, dir_okay=False)


class Plan(NamedTuple):
    """Holds the content of a reassignment file."""

    replicas: Replicas
    log_dirs: LogDirs


class Rates(NamedTuple):
    """Holds limits in bytes per second. None leaves a limit unchanged."""

    between_brokers: int | None
    between_log_dirs: int | None


def _action(name: str, text: str) -> Callable[[F], F]:
    """Return a flag for an action. All actions that are given are kept, whereas click would keep
    only the last.
    """

    def keep(context: click.Context, _: click.Parameter, is_given: bool) -> None:
        if is_given:
            context.meta.setdefault(_ACTIONS, []).append(name)

    return click.option(f"--{name}", is_flag=True, expose_value=False, callback=keep, help=text)


@click.command()
@_action("generate", "Propose a reassignment.")
@_action("execute", "Start a reassignment.")
@_action("verify", "Show the state of a reassignment.")
@_action("cancel", "Undo a reassignment that is in progress.")
@_action("list", "List the reassignments in progress.")
@click.option(
    "--reassignment-json-file",
    "plan_file",
    type=_file,
    metavar="FILE",
    help="The new replicas of partitions: for --execute, --verify and --cancel.",
)
@click.option(
    "--topics-to-move-json-file",
    "topics_file",
    type=_file,
    metavar="FILE",
    help="The topics to reassign: for --generate.",
)
@click.option("--broker-list", metavar="1,2,3", help="With --generate: the brokers to use.")
@click.option("--disable-rack-aware", is_flag=True, help="With --generate: ignore racks.")
@click.option(
    "--additional",
    is_flag=True,
    help=("With --execute: start even if other reassignments are in progress."),
)
@click.option(
    "--throttle",
    "bytes_per_s",
    type=click.IntRange(min=0),
    metavar="BYTES_PER_S",
    help="With --execute: each broker's limit for copying, in and out. --verify clears it.",
)
@click.option(
    "--replica-alter-log-dirs-throttle",
    "log_dir_bytes_per_s",
    type=click.IntRange(min=0),
    metavar="BYTES_PER_S",
    help="With --execute: each broker's limit for moves between its log directories.",
)
@click.option(
    "--preserve-throttles",
    is_flag=True,
    help="With --verify and --cancel: keep the throttles.",
)
@bootstrap_server
@click.pass_context
def reassign(  # noqa: PLR0913  (a command's parameters are its options)
    context: click.Context,
    plan_file: Path | None,
    topics_file: Path | None,
    broker_list: str | None,
    disable_rack_aware: bool,
    additional: bool,
    bytes_per_s: int | None,
    log_dir_bytes_per_s: int | None,
    preserve_throttles: bool,
    servers: str,
) -> int:
    """Move partitions to other brokers, or to other log directories.

    A file lists the new replicas of each partition, the preferred leader first:

    \b
      {"version":1,"partitions":[{"topic":"test","partition":0,"replicas":[2,3]}]}

    The move needs no further command. The new replicas copy the log, and when all of them are in
    sync, the old ones are removed.

    With "log_dirs":["any","/disk2/kafka"] in addition to "replicas", broker 3 keeps its replica in
    that log directory, and moves it there if it is in another one.

    --throttle limits how fast replicas copy. Run --verify until the move is complete, because only
    then does it clear the throttles of all brokers and of the file's topics. To change the rate of
    a move, run --execute again with --additional and the new rate.

    \b
    Examples:
      barnabas reassign --generate --topics-to-move-json-file topics.json --broker-list 1,2,3
      barnabas reassign --execute --reassignment-json-file plan.json
      barnabas reassign --execute --reassignment-json-file plan.json --throttle 50000000
      barnabas reassign --verify --reassignment-json-file plan.json
      barnabas reassign --list
    """
    actions = context.meta.get(_ACTIONS, [])
    if len(actions) != 1:
        raise click.UsageError("choose one of --generate, --execute, --verify, --cancel and --list")
    action = actions[0]
    rates = _rates(action, bytes_per_s, log_dir_bytes_per_s)
    if preserve_throttles and action not in ("verify", "cancel"):
        raise click.UsageError("--preserve-throttles needs --verify or --cancel")
    if action == "list":
        return run_client(_list(servers))
    if action == "generate":
        if topics_file is None or broker_list is None:
            raise click.UsageError("--generate needs --topics-to-move-json-file and --broker-list")
        topics = _read(topics_file, read_topics)
        brokers = _broker_ids(broker_list)
        return run_client(_generate(servers, topics, brokers, not disable_rack_aware))
    if plan_file is None:
        raise click.UsageError(f"--{action} needs --reassignment-json-file")
    plan = plan_of(plan_file)
    if action == "execute":
        return run_client(_execute(servers, plan, additional, rates))
    if action == "verify":
        return run_client(_verify(servers, plan, preserve_throttles))
    return run_client(_cancel(servers, plan, preserve_throttles))


def _rates(action: str, *given: int | None) -> Rates:
    options = ("--throttle", "--replica-alter-log-dirs-throttle")
    for option, rate in zip(options, given, strict=True):
        if rate is not None and action != "execute":
            raise click.UsageError(f"{option} needs --execute")
    return Rates(*given)


async def _list(servers: str) -> int:
    async with Admin(servers, **client_options()) as admin:
        _print(moving_lines(await admin.list_partition_reassignments()))
    return EXIT_OK


async def _generate(servers: str, names: list[str], brokers: list[int], by_rack: bool) -> int:
    async with Admin(servers, **client_options()) as admin:
        try:
            # A partition that is being reassigned has its old and its new replicas.
            moving = await admin.list_partition_reassignments()
        except ClusterAuthorizationFailed:
            moving = {}  # a proposal needs only rights to the topics
        topics = await admin.describe_topics(names)
        racks = await racks_of(admin)
    check_known(brokers, racks)
    chosen = {broker: racks[broker] if by_rack else None for broker in brokers}
    # As with a new topic, the first broker is chosen at random. Otherwise, all proposals would
    # favour the same one.
    plan = propose(topics, chosen, random.randrange(len(brokers)), moving)
    _print(
        [
            "Current partition replica assignment",
            plan_text(current(topics)),
            "",
            "Proposed partition reassignment configuration",
            plan_text(plan),
        ]
    )
    return EXIT_OK


async def _execute(servers: str, plan: Plan, additional: bool, rates: Rates) -> int:
    wanted = plan.replicas
    async with Admin(servers, **client_options()) as admin:
        check_known(
            [each for brokers in wanted.values() for each in brokers], await racks_of(admin)
        )
        before = await replicas_of(admin, wanted)
        moving = await admin.list_partition_reassignments()
        # As in Kafka, a further plan needs confirmation while moves are in progress.
        if moving and not additional:
            complain(
                _WHO,
                "other reassignments are in progress (see --list); to add to them, give "
                "--additional",
            )
            return EXIT_FAILURE
        _print(
            [
                "Current partition replica assignment",
                "",
                plan_text({name: before[name] for name in wanted}),
                "",
                "Save this to use as the --reassignment-json-file option during rollback",
            ]
        )
        if rates != (None, None):
            _print([_VERIFY])
        if rates.between_brokers is not None:
            # Set the throttle before starting the moves, so that nothing is copied unthrottled.
            await throttle(admin, moves(moving, wanted, before), rates.between_brokers)
            _print([f"The inter-broker throttle limit was set to {rates.between_brokers} B/s"])
        if rates.between_log_dirs is not None:
            taking_part = {each.broker_id for each in plan.log_dirs}
            await throttle_log_dirs(admin, taking_part, rates.between_log_dirs)
            _print(
                [f"The replica-alter-dir throttle limit was set to {rates.between_log_dirs} B/s"]
            )
        outcomes = await admin.alter_partition_reassignments(wanted)
        begun = sorted(name for name, error in outcomes.items() if error is None)
        if begun:
            _print([f"Successfully started partition reassignment{_s(begun)} for {_join(begun)}"])
        code = _failures(outcomes)
        return code or _failures(await start_moves(admin, plan.log_dirs))


async def _verify(servers: str, plan: Plan, preserve_throttles: bool) -> int:
    wanted, log_dirs = plan
    async with Admin(servers, **client_options()) as admin:
        # Look this up first, so that a move that ends before the next request counts as completed.
        moving = await admin.list_partition_reassignments()
        actual = current(await admin.describe_topics())
        found = places(log_dirs, await admin.describe_log_dirs()) if log_dirs else {}
        _print([*status_lines(wanted, actual, moving), *(move_lines(log_dirs, found) or [""])])
        are_moving = bool(moving) or any(each.is_moving() for each in found.values())
        # Clearing the throttle would also remove it from moves still in progress.
        if are_moving or preserve_throttles:  # a broker has only one rate for all moves
            return EXIT_OK
        return await _clear(admin, wanted, actual)


async def _clear(admin: Admin, wanted: Replicas, actual: Replicas) -> int:
    """Clear the throttles of all brokers, because it is no longer known which ones took part."""
    named = {broker for brokers in wanted.values() for broker in brokers}
    brokers = sorted(named | (await racks_of(admin)).keys())
    topics = sorted({name.topic for name in wanted} & {name.topic for name in actual})
    _print(clearing_lines(brokers, topics))
    failed = await clear(admin, brokers, topics)
    for resource, error in failed.items():
        complain(_WHO, f"the throttles of {resource.name}: {error} ({error.name})")
    return EXIT_FAILURE if failed else EXIT_OK


async def _cancel(servers: str, plan: Plan, preserve_throttles: bool) -> int:
    wanted, log_dirs = plan
    async with Admin(servers, **client_options()) as admin:
        moving = await admin.list_partition_reassignments(wanted)
        # None in place of replicas cancels a partition's reassignment (KIP-455).
        outcomes = await admin.alter_partition_reassignments(dict.fromkeys(moving))
        cancelled = sorted(name for name, error in outcomes.items() if error is None)
        if cancelled:
            _print(
                [
                    f"Successfully cancelled partition reassignment{_s(cancelled)} for: "
                    f"{_join(cancelled)}"
                ]
            )
        over = {
            name: error
            for name, error in outcomes.items()
            # The move ended between the two requests, so there is nothing left to cancel.
            if not isinstance(error, NoReassignmentInProgress)
        }
        if not over:
            _print(["None of the specified partition reassignments are active."])
        code = _failures(over)
        if log_dirs and not code:
            code = await _cancel_moves(admin, log_dirs)
        if code or preserve_throttles:
            return code
        return await _clear(admin, wanted, current(await admin.describe_topics()))


async def _cancel_moves(admin: Admin, log_dirs: LogDirs) -> int:
    """Cancel moves between log directories, by moving the replicas to where they are."""
    found = places(log_dirs, await admin.describe_log_dirs())
    back = {
        replica: place.current
        for replica, place in found.items()
        if place.current is not None and place.future is not None
    }
    if not back:
        _print(["None of the specified partition moves are active."])
    return _failures(await start_moves(admin, back))


async def racks_of(admin: Admin) -> dict[int, str | None]:
    """Return the rack of each broker."""
    described = await admin.describe_cluster()
    return {broker.broker_id: broker.rack for broker in described.brokers}


async def replicas_of(admin: Admin, wanted: Replicas) -> Replicas:
    """Return the replicas of these partitions. Raises BadPlan if any partition does not exist."""
    there = current(await admin.describe_topics(sorted({name.topic for name in wanted})))
    missing = sorted(wanted.keys() - there.keys())
    if missing:
        raise BadPlan(f"partition {missing[0]} does not exist")
    return there


def plan_of(path: Path) -> Plan:
    """Return the plan in a file. Raises BadPlan, which includes the file name."""
    return Plan(_read(path, read_plan), _read(path, read_log_dirs))


def check_known(brokers: Collection[int], racks: Mapping[int, str | None]) -> None:
    """Raise BadPlan if any broker is unknown."""
    unknown = sorted(set(brokers) - racks.keys())
    if unknown:
        raise BadPlan(f"there is no broker {unknown[0]}, only {','.join(map(str, sorted(racks)))}")


def _read(path: Path, parse: Callable[[str], T]) -> T:
    try:
        return parse(path.read_text(encoding="utf-8"))
    except (BadPlan, UnicodeDecodeError) as error:
        raise BadPlan(f"{path}: {error}") from error


def _broker_ids(text: str) -> list[int]:
    try:
        ids = [int(each) for each in text.split(",")]
    except ValueError:
        raise click.UsageError(f"--broker-list {text}: not broker ids, such as 1,2,3") from None
    if len(set(ids)) < len(ids):
        raise click.UsageError(f"--broker-list {text}: a broker is named twice")
    return ids


def _failures(outcomes: Mapping[N, KafkaError | None]) -> int:
    failed = {name: error for name, error in outcomes.items() if error is not None}
    for name, error in sorted(failed.items()):
        complain(_WHO, f"{name}: {error} ({error.name})")
    return EXIT_FAILURE if failed else EXIT_OK


def _print(lines: list[str]) -> None:
    for line in lines:
        click.echo(line)


def _join(names: list[TopicPartition]) -> str:
    return ",".join(map(str, names))


def _s(names: list[TopicPartition]) -> str:
    return "s" * (len(names) != 1)
