"""Implements `barnabas cluster start`, which runs for as long as its cluster.

It starts the plan's processes, reports when all are ready, and stops them on SIGTERM or Ctrl-C. A
second signal kills the remaining processes.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import time
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from barnabas.cli.cluster.layout import HOST, CannotRun, Plan, write_plan
from barnabas.cli.cluster.processes import (
    Interrupted,
    Started,
    ending,
    launch_broker,
    launch_zookeeper,
    stop_all,
    wait_for_broker,
    wait_for_zookeeper,
)
from barnabas.cli.cluster.zookeeper import check_reachable, has_javas_files
from barnabas.cli.complaint import complain
from barnabas.cli.main import EXIT_OK
from barnabas.cli.options import run_client
from barnabas.cli.server.pid_file import claim, read_pid_file, release
from barnabas.cli.waiting import Waiting
from barnabas.security.own_directory import own_directory

if TYPE_CHECKING:
    from barnabas.broker.security.secure_setup import SecureSetup
    from barnabas.client.admin.admin import Admin

WHO = "barnabas cluster start"

_POLL_S = 0.1
_SETTLE_S = 5.0
_SETTLE_POLL_S = 0.02
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def run(plan: Plan) -> int:
    """Run the cluster until it is stopped, and return the exit code. Raises CannotRun, ConfigError
    or OSError.
    """
    running = plan.running()
    # A second `start` on the same directory would find its ports in use, so report the process that
    # uses them.
    if running:
        name, process = next(iter(running.items()))
        raise CannotRun(
            f"{name}, process {process.pid}, is already running in {plan.directory}: "
            f"`barnabas cluster stop --dir {plan.directory}` ends it"
        )
    if plan.zookeeper_connect:
        check_reachable(plan.zookeeper_connect)
    if plan.is_secure:
        own_directory(plan.directory)  # this directory also holds ZooKeeper's files
    write_plan(plan)
    if not claim(plan.directory, plan.bootstrap_servers):
        owner = read_pid_file(plan.directory)
        raise CannotRun(
            f"{plan.directory} is in use by process {owner.pid}"
            if owner is not None
            else f"{plan.directory} cannot be written to"
        )
    try:
        return _Run(plan).run()
    finally:
        release(plan.directory)


class _Run:
    """Represents one run of a cluster."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._setup: SecureSetup | None = None
        self._children: list[Started] = []
        self._wants_stop = False

    def run(self) -> int:
        before = {number: signal.signal(number, self._on_signal) for number in _SIGNALS}
        try:
            return self._live()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _live(self) -> int:
        try:
            self._start()
        # Ctrl-C during the start is a request to stop, not a failure.
        except Interrupted:
            self._stop()
            return EXIT_OK
        except BaseException:
            self._stop()
            raise
        while not self._wants_stop:
            self._report_ended()
            time.sleep(_POLL_S)
        self._stop()
        return EXIT_OK

    def _start(self) -> None:
        plan = self._plan
        if plan.is_secure:
            from barnabas.cli.server.secure_option import prepare_security  # few clusters need it

            # Create the certificates before the brokers start. Otherwise, every broker would try to
            # create them.
            self._setup = prepare_security(plan.secure_directory, [HOST])
        keeper = self._start_zookeeper()
        # Start all brokers at once, so that none waits for another.
        brokers = {broker_id: launch_broker(plan, broker_id) for broker_id in plan.ports}
        self._children.extend(brokers.values())
        # Import the client while the processes start. `_settle` needs it when they are ready.
        import barnabas.client.admin.admin  # noqa: F401

        if keeper is not None:
            self._await_zookeeper(keeper)  # first, because its failure would explain the brokers'
        for broker in brokers.values():
            with Waiting(f"{broker.name} to be ready"):
                wait_for_broker(broker, lambda: self._wants_stop)
        run_client(self._settle(), "leaders of all partitions")
        pid = "" if keeper is None else f" pid {keeper.process.pid}"
        click.echo(f"zookeeper{pid} on {plan.zookeeper_address}")
        for broker_id, broker in brokers.items():
            metrics = plan.metrics_address(broker_id)
            click.echo(
                f"{broker.name} pid {broker.process.pid} on {plan.address(broker_id)}"
                + (f", metrics on {metrics}" if metrics else "")
            )
        if self._setup is not None:
            self._setup.write_client_files(plan.bootstrap_servers)
            click.echo(f"admin connects with --command-config {self._setup.client_file}")
        click.echo(f"barnabas cluster ready on {plan.bootstrap_servers}")
        sys.stdout.flush()

    def _start_zookeeper(self) -> Started | None:
        """Start the cluster's own ZooKeeper, if it has one, and return when brokers may start."""
        plan = self._plan
        if plan.zookeeper_connect:
            return None
        keeper = launch_zookeeper(plan)
        self._children.append(keeper)
        # Brokers take longer than our server to import their modules. They must not find the tree
        # of a secure cluster open, though, or retry less and less often while Java's server starts.
        if plan.is_secure or has_javas_files(plan.zookeeper_directory):
            self._await_zookeeper(keeper)
            self._close_zookeeper()
        return keeper

    def _await_zookeeper(self, keeper: Started) -> None:
        with Waiting(f"ZooKeeper on {self._plan.zookeeper_address}"):
            wait_for_zookeeper(self._plan, keeper, lambda: self._wants_stop)

    def _close_zookeeper(self) -> None:
        """Restrict access to ZooKeeper before brokers create nodes that others could replace."""
        owning = None if self._setup is None else self._setup.zookeeper_settings()
        if not owning:
            return
        from barnabas.cli.metadata.secure import close_server  # few clusters need it
        from barnabas.cluster.zookeeper_settings import settings_from
        from barnabas.config import BrokerConfig

        config = BrokerConfig({**owning, "zookeeper.connect": self._plan.zookeeper_address})
        run_client(close_server(settings_from(config)), "ZooKeeper's rights")

    def _client_options(self) -> dict[str, Any]:
        from barnabas.client.config import of_every_client

        return {} if self._setup is None else of_every_client(self._setup.client_settings())

    async def _settle(self) -> None:
        """Wait until all brokers know each other and every partition has a leader.

        The start succeeds even if a partition stays leaderless, because its replicas may start
        later.
        """
        import asyncio

        from barnabas.client.admin.admin import Admin
        from barnabas.errors import BarnabasError

        with contextlib.suppress(TimeoutError, BarnabasError):
            async with (
                asyncio.timeout(_SETTLE_S),
                Admin(self._plan.bootstrap_servers, **self._client_options()) as admin,
            ):
                while True:
                    if await self._is_settled(admin):
                        return
                    await asyncio.sleep(_SETTLE_POLL_S)

    async def _is_settled(self, admin: Admin) -> bool:
        cluster = await admin.describe_cluster()
        topics = await admin.describe_topics()
        is_led = all(each.leader >= 0 for topic in topics for each in topic.partitions)
        is_whole = len(cluster.brokers) == len(self._plan.ports)
        return (is_led and is_whole) or self._wants_stop

    def _report_ended(self) -> None:
        for child in list(self._children):
            code = child.process.poll()
            # Do not report processes that this command stopped.
            if code is None or self._wants_stop:
                continue
            self._children.remove(child)
            again = f"`barnabas cluster start-{child.name} --dir {self._plan.directory}`"
            who = f"{child.name}, process {child.process.pid},"
            complain(WHO, f"{who} {ending(code)}; {again} starts it again")

    def _stop(self) -> None:
        """Stop all processes, including children that have not yet written a pid file."""
        stop_all(self._plan)
        for child in self._children:
            if child.process.poll() is None:
                child.process.terminate()
            child.process.wait()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        # A second signal means that the user does not want to wait for a clean stop.
        if self._wants_stop:
            for child in self._children:
                if child.process.poll() is None:
                    child.process.kill()
        self._wants_stop = True
