"""Implements `barnabas cluster`, which runs several brokers and a ZooKeeper on one machine.

It also shows the state and health of any cluster (`state_command`). Kafka has no such command, so
each of its processes needs its own terminal.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypedDict, Unpack

import click

from barnabas.cli.cluster.layout import CannotRun, Plan, existing_plan, make_plan
from barnabas.cli.cluster.processes import (
    launch_broker,
    launch_zookeeper,
    stop_all,
    stop_process,
    wait_for_broker,
    wait_for_zookeeper,
)
from barnabas.cli.cluster.state_command import describe, health
from barnabas.cli.cluster.zookeeper import check_reachable
from barnabas.cli.complaint import complain
from barnabas.cli.group import command_group
from barnabas.cli.main import EXIT_FAILURE, EXIT_OK
from barnabas.cli.options import key_values
from barnabas.cli.server.daemon import log_file_of, start_daemon


class _Start(TypedDict):
    """The options of `start`."""

    count: int | None
    directory: Path
    port: int
    overrides: tuple[str, ...]
    secure: bool
    zookeeper_connect: str | None
    is_daemon: bool


_DEFAULT_DIRECTORY = "~/barnabas-cluster"
_FIRST_PORT = 9092


def _default_directory() -> Path:
    """Return a directory under the home directory. A directory in /tmp could already have been
    created by another user.
    """
    try:
        return Path(_DEFAULT_DIRECTORY).expanduser()
    except RuntimeError:
        raise click.UsageError(
            "the home directory is unknown: name a directory with --dir"
        ) from None


_directory = click.option(
    "--dir",
    "directory",
    type=click.Path(path_type=Path, file_okay=False),
    default=_default_directory,
    show_default=_DEFAULT_DIRECTORY,
    metavar="DIR",
    help="The directory of the whole cluster.",
)


@command_group()
def cluster() -> None:
    """Run a cluster of several brokers on this machine; describe and check any cluster.

    \b
    Examples:
      barnabas cluster health
      barnabas cluster start --brokers 3 --dir ~/cluster
      barnabas cluster stop-broker 2 --dir ~/cluster
      barnabas cluster start-broker 2 --dir ~/cluster
      barnabas cluster stop --dir ~/cluster
    """


cluster.add_command(describe)
cluster.add_command(health)


@cluster.command()
@click.option(
    "--brokers",
    "count",
    type=click.IntRange(1, 100),
    metavar="N",
    help="The number of brokers; default: as many as before, or 3.",
)
@_directory
@click.option(
    "--port",
    type=click.IntRange(1, 65_535),
    default=_FIRST_PORT,
    show_default=True,
    metavar="PORT",
    help="New brokers listen on the first free ports, starting with this one.",
)
@click.option(
    "--override",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="A config for every broker; may be repeated.",
)
@click.option("--secure", is_flag=True, help="TLS, authentication and ACLs; permanent.")
@click.option(
    "--zookeeper-connect",
    metavar="HOST:PORT[,...][/CHROOT]",
    help="Use this ZooKeeper instead of running one; permanent.",
)
@click.option("-daemon", "--daemon", "is_daemon", is_flag=True, help="Run in the background.")
def start(**options: Unpack[_Start]) -> int:
    """Start a ZooKeeper and brokers 1 to N, and run them until Ctrl-C or SIGTERM.

    Each is a separate process, which you may kill. If the directory already contains a cluster,
    that cluster is started, on the same ports. Partitions have three replicas, of which two must be
    in sync, unless --override changes this. With barnabas.metrics.port, broker 1 uses that port,
    and the others use the next ones.

    \b
    Examples:
      barnabas cluster start
      barnabas cluster start -daemon --brokers 3 --dir ~/cluster
      barnabas cluster start --dir ~/cluster --override num.partitions=6
      barnabas cluster start --override barnabas.metrics.port=9400
      barnabas cluster start --dir ~/cluster --secure
      barnabas cluster start --zookeeper-connect zk1:2181,zk2:2181,zk3:2181/test
    """
    if options["is_daemon"]:
        return _exit_code("start", lambda: _start_in_background(options))
    from barnabas.cli.cluster.run import run

    overrides = key_values(options["overrides"], "--override")

    def work() -> int:
        plan = make_plan(options["directory"], options["count"], overrides, options["port"])
        # What a cluster once was, secure or without its own ZooKeeper, it stays, even if the option
        # is missing from a later start.
        plan = plan._replace(
            is_secure=plan.is_secure or options["secure"],
            zookeeper_connect=options["zookeeper_connect"] or plan.zookeeper_connect,
        )
        return run(plan)

    return _exit_code("start", work)


def _start_in_background(options: _Start) -> int:
    words = ["cluster", "start", "--dir", str(options["directory"]), "--port", str(options["port"])]
    if options["count"] is not None:
        words += ["--brokers", str(options["count"])]
    if options["secure"]:
        words += ["--secure"]
    if options["zookeeper_connect"]:
        words += ["--zookeeper-connect", options["zookeeper_connect"]]
    for override in options["overrides"]:
        words += ["--override", override]
    return start_daemon(words, log_file_of(options["directory"]), "barnabas cluster ready on ")


@cluster.command()
@_directory
def stop(directory: Path) -> int:
    """Stop a cluster cleanly, from another terminal or after its command was killed.

    \b
    Examples:
      barnabas cluster stop
      barnabas cluster stop --dir ~/cluster
    """

    def work() -> int:
        plan = existing_plan(directory)
        running = plan.running()
        # First, stop the command that started the cluster. Otherwise, it would report the stopped
        # processes as failed.
        if not stop_process("the cluster's command", directory) and not running:
            raise CannotRun(f"nothing is running in {directory}")
        stop_all(plan)
        for name in running:
            click.echo(f"Stopped {name}.")
        return EXIT_OK

    return _exit_code("stop", work)


@cluster.command("stop-broker")
@click.argument("broker_id", metavar="N", type=int)
@_directory
def stop_broker(broker_id: int, directory: Path) -> int:
    """Stop one broker cleanly, after its partitions have moved to other leaders.

    \b
    Examples:
      barnabas cluster stop-broker 2
      barnabas cluster stop-broker 2 --dir ~/cluster
    """

    def work() -> int:
        plan = _with_broker(directory, broker_id)
        if not stop_process(f"broker {broker_id}", plan.broker_directory(broker_id)):
            raise CannotRun(f"broker {broker_id} is not running")
        click.echo(f"Stopped broker {broker_id}.")
        return EXIT_OK

    return _exit_code("stop-broker", work)


@cluster.command("start-broker")
@click.argument("broker_id", metavar="N", type=int)
@_directory
def start_broker(broker_id: int, directory: Path) -> int:
    """Start a broker that was stopped or killed, and return when it is ready.

    After a kill, the command waits until the broker's old session has expired.

    \b
    Examples:
      barnabas cluster start-broker 2
      barnabas cluster start-broker 2 --dir ~/cluster
    """

    def work() -> int:
        plan = _with_broker(directory, broker_id)
        running = plan.running()
        if f"broker {broker_id}" in running:
            pid = running[f"broker {broker_id}"].pid
            raise CannotRun(f"broker {broker_id} is already running, as process {pid}")
        # Without ZooKeeper, the broker would wait, and so would this command.
        if plan.zookeeper_connect:
            check_reachable(plan.zookeeper_connect)
        elif "zookeeper" not in running:
            raise CannotRun(
                f"no zookeeper is running in {directory}: `barnabas cluster start` starts "
                "everything, `barnabas cluster start-zookeeper` only ZooKeeper"
            )
        started = launch_broker(plan, broker_id)
        # Ctrl-C ends only this command; the broker, in its own session, continues to start.
        wait_for_broker(started, lambda: False)
        click.echo(f"broker {broker_id} pid {started.process.pid} on {plan.address(broker_id)}")
        return EXIT_OK

    return _exit_code("start-broker", work)


@cluster.command("stop-zookeeper")
@_directory
def stop_zookeeper(directory: Path) -> int:
    """Stop the cluster's ZooKeeper; brokers continue to serve, but elect no leaders.

    \b
    Examples:
      barnabas cluster stop-zookeeper
      barnabas cluster stop-zookeeper --dir ~/cluster
    """

    def work() -> int:
        plan = _with_own_zookeeper(directory)
        if not stop_process("zookeeper", plan.zookeeper_directory):
            raise CannotRun("zookeeper is not running")
        click.echo("Stopped zookeeper.")
        return EXIT_OK

    return _exit_code("stop-zookeeper", work)


@cluster.command("start-zookeeper")
@_directory
def start_zookeeper(directory: Path) -> int:
    """Start the cluster's ZooKeeper after it was stopped or killed; its data is kept.

    \b
    Examples:
      barnabas cluster start-zookeeper
      barnabas cluster start-zookeeper --dir ~/cluster
    """

    def work() -> int:
        plan = _with_own_zookeeper(directory)
        running = plan.running()
        if "zookeeper" in running:
            raise CannotRun(f"zookeeper is already running, as process {running['zookeeper'].pid}")
        started = launch_zookeeper(plan)
        wait_for_zookeeper(plan, started, lambda: False)
        click.echo(f"zookeeper pid {started.process.pid} on {plan.zookeeper_address}")
        return EXIT_OK

    return _exit_code("start-zookeeper", work)


def _exit_code(command: str, work: Callable[[], int]) -> int:
    """Run a function and return its exit code. An expected error is reported on standard error."""
    try:
        return work()
    except CannotRun as error:
        complain(f"barnabas cluster {command}", str(error))
        return EXIT_FAILURE


def _with_own_zookeeper(directory: Path) -> Plan:
    """Return the plan of a cluster that must run its own ZooKeeper. Raises CannotRun."""
    plan = existing_plan(directory)
    if plan.zookeeper_connect:
        raise CannotRun(
            f"the cluster in {directory} runs no ZooKeeper of its own: it uses the one on "
            f"{plan.zookeeper_connect}"
        )
    return plan


def _with_broker(directory: Path, broker_id: int) -> Plan:
    """Return the plan of a cluster that must include this broker. Raises CannotRun."""
    plan = existing_plan(directory)
    if broker_id not in plan.ports:
        raise CannotRun(f"the cluster in {directory} has brokers 1 to {len(plan.ports)}")
    return plan
