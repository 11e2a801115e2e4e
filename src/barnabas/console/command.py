"""Implements `barnabas console`, the web console of a cluster."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import signal
import socket
from collections.abc import Iterator
from ipaddress import ip_address
from typing import Final

import click
import uvicorn

from barnabas.cli.complaint import warn
from barnabas.cli.connection import bootstrap_server, client_options
from barnabas.cli.options import run_client
from barnabas.console.application import application
from barnabas.console.guard import LOCAL_NAMES
from barnabas.console.race import race
from barnabas.console.watch import ClusterWatch
from barnabas.errors import ConfigError

_DEFAULT_PORT: Final = 8080
_MOST_CONNECTIONS: Final = 200
_BACKLOG: Final = 128
_STOP_S: Final = 2


@click.command()
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=_DEFAULT_PORT,
    show_default=True,
    metavar="PORT",
    help="The port of the web page; 0 selects a free one.",
)
@click.option(
    "--host",
    default="localhost",
    show_default=True,
    metavar="HOST",
    help="The address or name to listen on. Whoever reaches it sees the cluster: there is no "
    "log-in.",
)
@bootstrap_server
def console(port: int, host: str, servers: str) -> None:
    """Serve a web page that shows a cluster: what needs a person, and brokers, topics, messages,
    groups, transactions, events and rules of access.

    The page changes nothing in the cluster. It shows what the user of --command-config may see,
    works with every cluster that speaks Kafka's protocol, and with Barnabas also tells why. The
    cluster is looked at only while a page is open. Stop the command with Ctrl-C or SIGTERM.

    \b
    Examples:
      barnabas console
      barnabas console --bootstrap-server kafka1:9092 --port 9000
      barnabas console --profile production --host 10.0.0.5
    """
    if not _is_local(host):
        warn(
            "barnabas console",
            f"--host {host}: everyone who can reach this address sees the cluster and its "
            "messages, without a log-in",
        )
    run_client(_serve(servers, host, port), None)


async def _serve(servers: str, host: str, port: int) -> None:
    stopping = asyncio.Event()
    sock = _listening(host, port)
    with contextlib.closing(sock):
        watch = ClusterWatch(servers, client_options())
        await watch.start()
        try:
            loop = asyncio.get_running_loop()
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, stopping.set)
            await _serve_until(stopping, watch, sock, host)
        finally:
            await watch.close()


async def _serve_until(
    stopping: asyncio.Event, watch: ClusterWatch, sock: socket.socket, host: str
) -> None:
    """Serve until a signal arrives or something fails."""
    names = [host] if _is_local(host) else [host, socket.gethostname(), socket.getfqdn()]
    server = _Server(
        uvicorn.Config(
            application(watch, stopping, names),
            access_log=False,
            http="h11",
            lifespan="off",
            limit_concurrency=_MOST_CONNECTIONS,
            log_config=None,
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=_STOP_S,
            ws="none",
        )
    )
    serving = asyncio.create_task(server.serve([sock]))
    serving.add_done_callback(lambda _: stopping.set())
    shown = f"[{host}]" if ":" in host else host
    click.echo(f"barnabas console ready on http://{shown}:{sock.getsockname()[1]}/")
    try:
        await race(watch.run(), stopping.wait())
    finally:
        stopping.set()  # ends the streams
        server.should_exit = True
        await serving


class _Server(uvicorn.Server):
    """Leaves the signals to the command, which stops the looks as well."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens. Raises ConfigError."""
    try:
        found = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE | socket.AI_ADDRCONFIG
        )
    except OSError as error:
        raise ConfigError(f"--host {host}: {error.strerror or error}") from error
    # Where a name has addresses of both kinds, browsers try the other one as well.
    family, _, _, _, address = min(found, key=lambda each: each[0] != socket.AF_INET)
    try:
        return socket.create_server(address[:2], family=family, backlog=_BACKLOG)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise ConfigError(
                f"--port {port}: another process listens on it; choose another one, or 0 for any"
            ) from error
        raise ConfigError(f"--host {host} --port {port}: {error.strerror or error}") from error


def _is_local(host: str) -> bool:
    if host in LOCAL_NAMES:
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
