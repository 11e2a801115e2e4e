"""Implements `barnabas migrate`, which replaces Kafka's brokers by ours, or ours by Kafka's."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import click

from barnabas.cli.connection import bootstrap_server
from barnabas.cli.group import command_group
from barnabas.cli.main import EXIT_FAILURE, EXIT_OK
from barnabas.cli.migrate.facts import BARNABAS, KAFKA, UNKNOWN, ClusterFacts
from barnabas.cli.migrate.files import directory_findings
from barnabas.cli.migrate.findings import Finding, findings, return_findings
from barnabas.cli.migrate.plan import losses, obstacles, order
from barnabas.cli.migrate.read import connection_to
from barnabas.cli.migrate.state_file import State, lock_state, read_state
from barnabas.cli.migrate.step import Options, Stepper, choose
from barnabas.cli.options import INT32, Duration, as_json, run_client
from barnabas.counted import counted
from barnabas.errors import ConfigError

F = TypeVar("F", bound=Callable[..., Any])

_STATE = "barnabas-migrate.json"
_to = click.option(
    "--to",
    "target",
    type=click.Choice((BARNABAS, KAFKA)),
    default=BARNABAS,
    show_default=True,
    help="The kind that all brokers will be.",
)
_without_state = click.option(
    "--without-state",
    is_flag=True,
    help="Start without that file, although the cluster has brokers of both kinds.",
)


@command_group()
def migrate() -> None:
    """Replace the brokers of a Kafka cluster by Barnabas brokers, one at a time, or the reverse.

    Both kinds form one cluster as long as they share its ZooKeeper, so clients keep working. Each
    broker keeps its id, its address and its directories.

    \b
    Examples:
      barnabas migrate check --log-dir /srv/kafka-logs
      barnabas migrate plan
      barnabas migrate step --execute
      barnabas migrate status
      barnabas migrate back --execute
    """


@migrate.command()
@click.option(
    "--log-dir",
    "directories",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    multiple=True,
    metavar="DIR",
    help="A log directory of a broker on this machine, to check its files; may be repeated.",
)
@as_json
@bootstrap_server
def check(directories: tuple[Path, ...], as_json: bool, servers: str) -> int:
    """List what Barnabas cannot take over from a Kafka cluster.

    Lines with "blocks" must be resolved first; then the exit code is 1. The other lines are for
    your information. Nothing is changed. The files of a log directory are checked only with
    --log-dir, on the machine of each broker.

    \b
    Examples:
      barnabas migrate check
      barnabas migrate check --log-dir /disk1/kafka --log-dir /disk2/kafka
      barnabas migrate check --json
    """
    found = findings(run_client(_facts(servers, in_full=True)))
    for directory in directories:
        found += directory_findings(directory)
    blocking = sum(each.blocks for each in found)
    if as_json:
        click.echo(json.dumps([each._asdict() for each in found], indent=2))
    else:
        for each in sorted(found, key=_rank):
            click.echo(f"{'blocks' if each.blocks else 'note'}: {each.text}")
        outcome = counted(blocking, "problem") if blocking else "nothing"
        click.echo(f"{outcome} in the way, {counted(len(found) - blocking, 'note')}")
    return EXIT_FAILURE if blocking else EXIT_OK


@migrate.command()
@_to
@bootstrap_server
def plan(target: str, servers: str) -> None:
    """Print the order of the replacements, and what each has to wait for.

    The controller is last, so that it changes only once. Nothing is changed.

    \b
    Examples:
      barnabas migrate plan
      barnabas migrate plan --to kafka
    """
    facts = run_client(_facts(servers))
    left = order(facts, target)
    if not left:
        click.echo(f"every broker is {target}; there is nothing to replace")
    for number, broker_id in enumerate(left, 1):
        role = ", the controller" if broker_id == facts.controller_id else ""
        kind = facts.kind_of(broker_id)
        click.echo(
            f"{number}. broker {broker_id} ({kind}{role}): leads {len(facts.led_by(broker_id))} of "
            f"{counted(len(facts.replicas_on(broker_id)), 'replica')}"
        )
        for reason in obstacles(facts, broker_id):
            click.echo(f"   must wait: {reason}")
        for loss in losses(facts, broker_id):
            click.echo(f"   meanwhile: {loss}")


@migrate.command()
@as_json
@bootstrap_server
def status(as_json: bool, servers: str) -> int:
    """Show the kind of each broker, the controller, and whether all replicas are in sync.

    The exit code is 1 if a broker is not alive or a replica is not in sync.

    \b
    Examples:
      barnabas migrate status
      barnabas migrate status --json
    """
    facts = run_client(_facts(servers))
    rows = list(_rows(facts))
    behind = facts.out_of_sync()
    if as_json:
        values = {
            "cluster_id": facts.cluster_id,
            "brokers": rows,
            "out_of_sync": [str(name) for name in behind],
        }
        click.echo(json.dumps(values, indent=2))
    else:
        for row in rows:
            role = "\tController" if row["controller"] else ""
            click.echo(
                f"Broker: {row['broker']}\tKind: {row['kind']}\tLeaders: {row['leaders']}\t"
                f"Replicas: {row['replicas']}\tIn sync: {row['in_sync']}{role}"
            )
        if behind:
            click.echo(f"{counted(len(behind), 'partition')} not fully in sync")
    is_whole = not behind and all(row["kind"] != UNKNOWN for row in rows)
    return EXIT_OK if is_whole else EXIT_FAILURE


def _step_options(command: F) -> F:
    for option in reversed(
        (
            click.option("--execute", is_flag=True, help="Do it; otherwise, only print the plan."),
            click.option(
                "--broker",
                "broker_id",
                type=INT32,
                metavar="ID",
                help="The broker to replace; default: the next one of the plan.",
            ),
            click.option(
                "--stop-command",
                metavar="COMMAND",
                help="A shell command that stops the broker; {broker} stands for its id. Default: "
                "you are asked to stop it.",
            ),
            click.option(
                "--start-command",
                metavar="COMMAND",
                help="A shell command that starts the other kind, and returns.",
            ),
            click.option(
                "--state",
                "state_file",
                type=click.Path(path_type=Path, dir_okay=False),
                default=_STATE,
                show_default=True,
                help="The file that keeps the progress.",
            ),
            _without_state,
            click.option(
                "--timeout",
                "timeout_s",
                type=Duration(),
                default="10m",
                show_default=True,
                help="How long to wait for each event.",
            ),
            click.option(
                "--verify",
                "depth",
                type=click.Choice(("records", "ends")),
                default="records",
                show_default=True,
                help="Whether to compare all records below the high watermark with the leaders', "
                "or only where the logs end.",
            ),
            click.option(
                "--allow-unavailable",
                is_flag=True,
                help="Continue although some partitions are unavailable meanwhile.",
            ),
        )
    ):
        command = option(command)
    return bootstrap_server(command)


@migrate.command()
@_step_options
def step(**options: Any) -> int:
    """Replace one Kafka broker by a Barnabas broker.

    The command waits until all replicas are in sync, and asks you to stop the broker, whose
    controlled shutdown moves its leaders to other brokers. It then asks you to start the new
    broker, waits until it is in sync, compares its replicas with those of the leaders, and restores
    the preferred leaders. Run it once for each broker.

    If it is interrupted, run it again: it continues where it stopped. Without --execute, it only
    prints what it would do.

    \b
    Examples:
      barnabas migrate step
      barnabas migrate step --execute
      barnabas migrate step --execute --stop-command 'ssh kafka{broker} systemctl stop kafka' \\
        --start-command 'ssh kafka{broker} systemctl start barnabas'
    """
    return _replace_one(BARNABAS, options)


@migrate.command()
@_step_options
def back(**options: Any) -> int:
    """Replace one Barnabas broker by a Kafka broker, in the same way as `step`.

    \b
    Examples:
      barnabas migrate back
      barnabas migrate back --execute --broker 2
    """
    return _replace_one(KAFKA, options)


def _replace_one(target: str, options: dict[str, Any]) -> int:
    chosen = Options(
        options["state_file"],
        options["stop_command"],
        options["start_command"],
        options["timeout_s"],
        options["depth"] == "records",
        options["allow_unavailable"],
    )
    servers, broker_id, fresh = options["servers"], options["broker_id"], options["without_state"]
    if options["execute"]:
        with lock_state(chosen.state_file):
            return run_client(_execute(servers, target, broker_id, chosen, fresh=fresh), None)
    facts = run_client(_facts(servers, in_full=True))
    state = _state(chosen.state_file, facts, target, fresh=fresh)
    if state.current is not None:
        click.echo(f"would continue with broker {state.current.broker_id} ({chosen.state_file})")
        click.echo("nothing was done; give --execute to do it")
        return EXIT_OK
    if _echo_blocking(facts, target):
        return EXIT_FAILURE
    left = order(facts, target)
    if not left:
        click.echo(f"every broker is {target}; there is nothing to replace")
        return EXIT_OK
    name = choose(facts, target, broker_id)
    click.echo(f"would replace broker {name} ({facts.kind_of(name)}) by {target}")
    for reason in obstacles(facts, name):
        click.echo(f"  after waiting: {reason}")
    for loss in losses(facts, name):
        click.echo(f"  meanwhile: {loss}")
    click.echo("nothing was done; give --execute to do it")
    return EXIT_OK


def _state(path: Path, facts: ClusterFacts, target: str, *, fresh: bool) -> State:
    """Return the progress in the file. Raises ConfigError if there should be a file, but is none.

    Without it, a broker of an interrupted step would not be verified before the next one.
    """
    state = read_state(path, facts.cluster_id, target)
    replaced = [each for each in facts.broker_ids() if facts.kind_of(each) == target]
    if path.exists() or fresh or not replaced or not order(facts, target):
        return state
    named = ", ".join(map(str, replaced))
    raise ConfigError(
        f"{'broker' if len(replaced) == 1 else 'brokers'} {named} of this cluster "
        f"{'is' if len(replaced) == 1 else 'are'} already {target}, but there is no progress in "
        f"{path.absolute()}; run the command in the directory of the earlier steps, or name their "
        "file with --state. If there is none, give --without-state"
    )


def _echo_blocking(facts: ClusterFacts, target: str) -> bool:
    """Print what makes the replacement impossible, and return whether there is anything."""
    found = findings(facts) if target == BARNABAS else return_findings(facts)
    blocking = [each for each in found if each.blocks]
    for each in blocking:
        click.echo(f"blocks: {each.text}")
    return bool(blocking)


async def _execute(
    servers: str, target: str, broker_id: int | None, options: Options, *, fresh: bool
) -> int:
    async with connection_to(servers) as connection:
        facts = await connection.facts(in_full=True)
        state = _state(options.state_file, facts, target, fresh=fresh)
        # An interrupted step has passed the check, and its broker may be down.
        if state.current is None and _echo_blocking(facts, target):
            if UNKNOWN in map(facts.kind_of, facts.broker_ids()):
                click.echo(
                    f"{options.state_file.absolute()} names no unfinished step; if there is one, "
                    "run the command in its directory, or name its file with --state"
                )
            return EXIT_FAILURE
        done = await Stepper(connection, state, options, click.echo).run(broker_id)
        left = order(await connection.look(), target)
    more = f"; next is broker {left[0]}" if left else f"; every broker is {target}"
    click.echo(f"broker {done} is {target}{more}")
    return EXIT_OK


async def _facts(servers: str, *, in_full: bool = False) -> ClusterFacts:
    async with connection_to(servers) as connection:
        return await connection.facts(in_full=in_full)


def _rank(finding: Finding) -> bool:
    return not finding.blocks


def _rows(facts: ClusterFacts) -> Iterator[dict[str, Any]]:
    for broker_id in facts.broker_ids():
        names = set(facts.replicas_on(broker_id))
        in_sync = sum(broker_id in view.isr for name, view in facts.partitions() if name in names)
        yield {
            "broker": broker_id,
            "kind": facts.kind_of(broker_id),
            "controller": broker_id == facts.controller_id,
            "leaders": len(facts.led_by(broker_id)),
            "replicas": len(names),
            "in_sync": in_sync,
        }
