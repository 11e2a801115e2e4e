"""Implements `kafka-reassign-partitions.sh --zookeeper` as in Kafka 2.3.1, with its messages.

The request is sent to the brokers registered in ZooKeeper. In 2.3.1, a plan with log directories
also needed --bootstrap-server, but we need only --zookeeper.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Final

import click

from barnabas.cli.complaint import complain
from barnabas.cli.kafka.options import BadCommandLine, Given
from barnabas.cli.kafka.tool import admin_of
from barnabas.cli.main import EXIT_FAILURE, EXIT_OK
from barnabas.cli.partitions.reassign_command import (
    Plan,
    check_known,
    plan_of,
    racks_of,
    replicas_of,
)
from barnabas.cli.partitions.reassign_log_dirs import Place, places, start_moves
from barnabas.cli.partitions.reassign_plan import Replicas, current, plan_text
from barnabas.cli.partitions.reassign_throttle import (
    BROKER_SETTINGS,
    TOPIC_SETTINGS,
    clear,
    moves,
    throttle,
    throttle_log_dirs,
)
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.configs import (
    BROKER,
    DYNAMIC_BROKER_CONFIG,
    DYNAMIC_TOPIC_CONFIG,
    TOPIC,
    ConfigResource,
)

_WHO: Final = "kafka-reassign-partitions.sh"
_VERIFY: Final = (
    "Warning: You must run Verify periodically, until the reassignment completes, to ensure the "
    "throttle is removed. You can also alter the throttle by rerunning the Execute command passing "
    "a new value."
)
_FILE: Final = "reassignment-json-file"
_OWN: Final = (DYNAMIC_BROKER_CONFIG, DYNAMIC_TOPIC_CONFIG)


def plan_of_line(given: Given, action: str) -> Plan:
    """Return the plan for --execute or --verify. Raises BadCommandLine or BadPlan."""
    if _FILE not in given:
        raise BadCommandLine(f"--{action} needs --{_FILE}")
    others = ["topics-to-move-json-file", "disable-rack-aware", "broker-list"]
    # 2.3.1 accepts throttles only with --execute.
    if action == "verify":
        others += ["throttle", "replica-alter-log-dirs-throttle"]
    given.not_with(action, *others)
    return plan_of(Path(given.required_text(_FILE)))


async def execute(given: Given, plan: Plan) -> int:
    """Start the moves, or change the throttle of moves in progress, and return the exit code."""
    wanted = plan.replicas
    rate, own_rate = given.number("throttle", 0), given.number("replica-alter-log-dirs-throttle", 0)
    async with admin_of(given) as admin:
        check_known([each for ids in wanted.values() for each in ids], await racks_of(admin))
        before = await replicas_of(admin, wanted)
        # 2.3.1 allowed one plan at a time, in /admin/reassign_partitions. A second --execute only
        # changes the throttle of the current plan.
        moving = await admin.list_partition_reassignments()
        if moving:
            click.echo("There is an existing assignment running.")
        else:
            click.echo(
                f"Current partition replica assignment\n\n{plan_text(before)}\n\n"
                f"Save this to use as the --{_FILE} option during rollback"
            )
            if (rate, own_rate) != (None, None):
                click.echo(_VERIFY)
        if rate is not None:
            await throttle(admin, moves(moving, {} if moving else wanted, before), rate)
        if own_rate is not None:
            # 2.3.1 throttles moves between directories on every broker that holds a replica before
            # or after the reassignment.
            brokers = {each.broker_id for each in plan.log_dirs}
            brokers |= {each for ids in (*wanted.values(), *before.values()) for each in ids}
            await throttle_log_dirs(admin, brokers, own_rate)
        if moving:
            return EXIT_OK
        for name, value in (("inter-broker", rate), ("replica-alter-dir", own_rate)):
            if value is not None:
                click.echo(f"The {name} throttle limit was set to {value} B/s")
        outcomes = await admin.alter_partition_reassignments(wanted)
        failed = {str(name): error for name, error in outcomes.items() if error is not None}
        if not failed:
            click.echo("Successfully started reassignment of partitions.")
            moved = await start_moves(admin, plan.log_dirs)
            failed = {str(name): error for name, error in moved.items()}
    for text, error in sorted(failed.items()):
        complain(_WHO, f"{text}: {error} ({error.name})")
    return EXIT_FAILURE if failed else EXIT_OK


async def verify(given: Given, plan: Plan) -> int:
    """Print the state of each move, remove the throttle once all are complete, and return the exit
    code.
    """
    async with admin_of(given) as admin:
        # Look this up first, so that a move that ends before the next request counts as completed.
        moving = await admin.list_partition_reassignments()
        actual = current(await admin.describe_topics())
        dirs = await admin.describe_log_dirs() if plan.log_dirs else {}
        states = {
            f"partition {name}": _state(name in moving, actual.get(name) == replicas)
            for name, replicas in sorted(plan.replicas.items())
        }
        for replica, place in places(plan.log_dirs, dirs).items():
            states[f"replica {replica}"] = _place_state(place, plan.log_dirs[replica])
        click.echo("Status of partition reassignment: ")
        for what, state in states.items():
            click.echo(f"Reassignment of {what} {state}")
        # As in 2.3.1, remove the throttle only when all moves have completed, and keep it if one
        # failed.
        if set(states.values()) == {_state(False, True)}:
            return await _remove_throttle(admin, plan.replicas)
    return EXIT_OK


def _state(is_moving: bool, is_there: bool) -> str:
    if is_moving:
        return "is still in progress"
    return "completed successfully" if is_there else "failed"


def _place_state(place: Place, target: str) -> str:
    return _state(place.future == target, place.future is None and place.current == target)


async def _remove_throttle(admin: Admin, plan: Replicas) -> int:
    """Remove the throttle from all brokers, because it is no longer known which ones took part."""
    brokers, topics = sorted(await racks_of(admin)), sorted({name.topic for name in plan})
    # 2.3.1 prints "Throttle was removed." only if there was one.
    names = {*BROKER_SETTINGS, *TOPIC_SETTINGS}
    resources = [ConfigResource(BROKER, str(each)) for each in brokers]
    resources += [ConfigResource(TOPIC, each) for each in topics]
    if not await _has_any(admin, resources, names):
        return EXIT_OK
    failed = await clear(admin, brokers, topics)
    for resource, error in failed.items():
        complain(_WHO, f"the throttles of {resource.name}: {error} ({error.name})")
    if failed:
        return EXIT_FAILURE
    click.echo("Throttle was removed.")
    return EXIT_OK


async def _has_any(
    admin: Admin, resources: Iterable[ConfigResource], names: Collection[str]
) -> bool:
    """Return whether any of these configs is set on any of these resources, rather than
    inherited.
    """
    for resource in resources:
        for each in await admin.describe_configs(resource):
            if each.name in names and each.source in _OWN:
                return True
    return False
