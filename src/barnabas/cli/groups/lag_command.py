"""Implements `barnabas groups watch` and `barnabas groups describe --lag`."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from barnabas.cli.complaint import warn
from barnabas.cli.connection import bootstrap_server, client_options
from barnabas.cli.groups.lag_text import changes, families, lag_text, lag_values, states
from barnabas.cli.groups.names import GroupNames, group_names
from barnabas.cli.main import EXIT_FAILURE, EXIT_OK
from barnabas.cli.options import Duration, as_json, run_client
from barnabas.cli.terminal import for_terminal
from barnabas.client.errors import Unreachable
from barnabas.client.lag.group_lag import GroupLag
from barnabas.client.lag.readings import DEAD
from barnabas.client.lag.verdict import PATIENCE_MS, State
from barnabas.errors import KafkaError, UnknownTopicOrPartition, in_one_line
from barnabas.metrics import Family

if TYPE_CHECKING:
    from barnabas.client.lag.looker import LagLooker

F = TypeVar("F", bound=Callable[..., Any])

_PAUSE_S = 1.0  # the pause between polls in `describe`
_COUNTED_ONCE, _COUNTED_OFTEN = 10_000, 1_000  # records of a partition
_SILENCE_LOOKS, _SILENCE_S = 5, 10  # a poll that exceeds both has failed


class Judging(NamedTuple):
    """Holds the options, shared by both commands, that determine how lag is judged."""

    isolation_level: str
    stuck_after_s: float
    most: int

    def looker(self, servers: str) -> LagLooker:
        """Return a `LagLooker` with these options."""
        # Import this only here, because other group commands need no consumer.
        from barnabas.client.lag.looker import LagLooker

        return LagLooker(
            servers,
            client_options(),
            isolation_level=self.isolation_level,
            patience_ms=round(self.stuck_after_s * 1000),
            most=self.most,
        )


def judging(most: int = _COUNTED_ONCE) -> Callable[[F], F]:
    """Add the options of `Judging`. `most` is the default number of records to count."""
    isolation = click.option(
        "--isolation-level",
        type=click.Choice(("read_uncommitted", "read_committed")),
        default="read_uncommitted",
        show_default=True,
        help="How the group reads: with read_committed, aborted records do not count as lag, and "
        "the log ends at the first open transaction.",
    )
    stuck_after = click.option(
        "--stuck-after",
        "stuck_after_s",
        type=Duration(),
        default=f"{PATIENCE_MS // 1000}s",
        show_default=True,
        metavar="TIME",
        help="A member that has records to read, but has not moved its offset for this long, is "
        "stuck; must be longer than the time between its commits.",
    )
    count = click.option(
        "--count",
        "most",
        type=click.IntRange(1),
        default=most,
        show_default=True,
        metavar="N",
        help="Count the records of a partition by reading them if there seem to be at most N; "
        "otherwise each offset counts as a record.",
    )

    def add(command: F) -> F:
        return isolation(stuck_after(count(command)))

    return add


async def lag_for(
    servers: str, names: GroupNames, options: Judging, watched_s: float
) -> list[GroupLag]:
    """Watch groups for this long, or until further polls would show nothing new, and return their
    lag.
    """
    loop = asyncio.get_running_loop()
    async with options.looker(servers) as looker:
        until_s = loop.time() + watched_s
        while True:
            lags = await looker.look(names.unique_ids)
            left_s = until_s - loop.time()
            if left_s <= 0 or all(map(_is_settled, lags)):
                return lags
            await asyncio.sleep(min(_PAUSE_S, watched_s / 10, left_s))


def _is_settled(lag: GroupLag) -> bool:
    """Return whether further polls would show nothing new."""
    # A group without a protocol has no members, because its consumers assign partitions to
    # themselves. Only a second poll shows whether they commit offsets.
    return all(
        verdict.state is State.CAUGHT_UP
        or (verdict.state is State.STOPPED and lag.group.protocol_type != "")
        for verdict in lag.verdicts.values()
    )


@click.command()
@group_names
@click.option(
    "--once",
    is_flag=True,
    help="Print the current state, and exit: with 1 if a group does not exist.",
)
@click.option(
    "--interval-ms",
    type=click.IntRange(50),
    default=1000,
    show_default=True,
    metavar="MS",
    help="The time between polls.",
)
@click.option(
    "--metrics-port",
    type=click.IntRange(1, 65535),
    metavar="PORT",
    help="Serve the lag at /metrics for Prometheus, and print nothing.",
)
@click.option(
    "--metrics-host",
    default="localhost",
    show_default=True,
    metavar="HOST",
    help="The address of --metrics-port.",
)
@judging(_COUNTED_OFTEN)
@as_json
@bootstrap_server
def watch(  # noqa: PLR0913  (a command's parameters are its options)
    names: GroupNames,
    once: bool,
    interval_ms: int,
    metrics_port: int | None,
    metrics_host: str,
    isolation_level: str,
    stuck_after_s: float,
    most: int,
    as_json: bool,
    servers: str,
) -> int:
    """Watch the lag of groups, or of all groups if none is named, in records and in seconds, until
    Ctrl-C.

    On a terminal, the output is a table; in a pipe or a file, it is the current state, and then a
    line for each partition that is new or whose state changes. --json prints an array for each
    poll, on one line. The lag in seconds is the age of the first record that the group has not
    read.

    \b
    Examples:
      barnabas groups watch
      barnabas groups watch orders --stuck-after 2m
      barnabas groups watch orders --once --json
      barnabas groups watch --metrics-port 9405
    """
    if metrics_port is not None and (once or as_json):
        raise click.UsageError("--metrics-port cannot be combined with --once or --json")
    watcher = _Watcher(names, Judging(isolation_level, stuck_after_s, most), interval_ms / 1000)
    if metrics_port is not None:
        work = watcher.serve(servers, metrics_host, metrics_port)
    elif not once and not as_json and sys.stdout.isatty():
        work = watcher.show(servers)
    else:
        work = watcher.write(servers, once=once, as_json=as_json)
    run_client(work, None)
    return EXIT_FAILURE if watcher.has_missing_groups() else EXIT_OK


class _Watcher:
    """Polls the lag of groups, and publishes it."""

    def __init__(self, names: GroupNames, options: Judging, interval_s: float) -> None:
        self._names = names
        self._options = options
        self._interval_s = interval_s
        self._lags: Sequence[GroupLag] = ()
        self._looked_at_ms = 0
        self._unready = "the groups have not been polled yet"

    def has_missing_groups(self) -> bool:
        """Return whether any of the requested groups did not exist at the last poll."""
        return any(lag.group.state == DEAD for lag in self._lags)

    async def write(self, servers: str, *, once: bool, as_json: bool) -> None:
        """Write lines to standard output."""
        async with self._options.looker(servers) as looker:
            self._lags = await looker.look(self._names.unique_ids)
            self._unready = ""
            while True:
                if as_json:
                    click.echo(json.dumps([lag_values(lag) for lag in self._lags]))
                elif not self._looked_at_ms:
                    click.echo("".join(for_terminal(lag_text(lag)) for lag in self._lags), nl=False)
                self._looked_at_ms = looker.looked_at_ms
                sys.stdout.flush()
                if once:
                    return
                before = states(self._lags)
                await self._look_again(looker)
                if not as_json:
                    for line in changes(before, self._lags, looker.looked_at_ms):
                        click.echo(for_terminal(line))

    async def show(self, servers: str) -> None:
        """Draw a table on the terminal."""
        from rich.console import Console
        from rich.live import Live

        from barnabas.cli.groups.lag_table import lag_screen

        console = Console(highlight=False)
        async with self._options.looker(servers) as looker:
            self._lags = await looker.look(self._names.unique_ids)
            self._unready = ""
            with Live(console=console, auto_refresh=False, screen=True) as live:
                while True:
                    live.update(lag_screen(self._lags, console.size, self._unready), refresh=True)
                    await self._look_again(looker, once=True)

    async def serve(self, servers: str, host: str, port: int) -> None:
        """Serve the metrics of the last poll."""
        from barnabas.net.metrics_listener import MetricsListener
        from barnabas.net.metrics_page import page

        def read() -> list[Family]:
            return families(self._lags, self._looked_at_ms)

        def render() -> Coroutine[Any, Any, bytes]:
            return page([read])

        listener = MetricsListener(render, lambda: self._unready)
        await listener.bind(host, port, "--metrics-port")
        try:
            async with self._options.looker(servers) as looker:
                self._lags = await looker.look(self._names.unique_ids)
                self._looked_at_ms, self._unready = looker.looked_at_ms, ""
                await listener.start()
                click.echo(f"serving the lag of groups at http://{host}:{port}/metrics", err=True)
                while True:
                    await self._look_again(looker, once=True)
        finally:
            listener.close()

    async def _look_again(self, looker: LagLooker, *, once: bool = False) -> None:
        """Poll after a pause. After a transient error, try again or, with `once`, only record the
        error.
        """
        while True:
            await asyncio.sleep(self._interval_s)
            try:
                async with asyncio.timeout(max(self._interval_s * _SILENCE_LOOKS, _SILENCE_S)):
                    self._lags = await looker.look(self._names.unique_ids)
            except (Unreachable, TimeoutError, UnknownTopicOrPartition) as error:
                reason = in_one_line(error) or "the brokers do not respond"
            except KafkaError as error:
                if not error.retriable:
                    raise
                reason = in_one_line(error)
            else:
                self._looked_at_ms, self._unready = looker.looked_at_ms, ""
                return
            if not once and not self._unready:
                warn("barnabas groups watch", f"{reason}; retrying")
            self._unready = reason
            if once:
                return
