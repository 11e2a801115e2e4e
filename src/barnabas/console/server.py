"""Serves the console on one socket until a signal arrives or the caller stops it."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
from collections.abc import Callable, Coroutine, Mapping, Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final, NamedTuple

from starlette.types import ASGIApp

from barnabas.console.application import application
from barnabas.console.guard import LOCAL_NAMES, Guard
from barnabas.console.race import race
from barnabas.console.sign_in.admission import Lifetime
from barnabas.console.sign_in.door import Door
from barnabas.console.watch import ClusterWatch
from barnabas.errors import ConfigError
from barnabas.net.web_server import WebServer, serving, set_on_signals

_MOST_CONNECTIONS: Final = 400
_BACKLOG: Final = 256
_STOP_S: Final = 2


class Address(NamedTuple):
    """The host and port to listen on. If the port is 0, the system chooses a free one."""

    host: str
    port: int


class Mode(NamedTuple):
    """Holds what the console may do in the cluster, the client options that it uses, and the
    folders of the pipelines that it shows."""

    options: Mapping[str, Any]
    may_write: bool = False
    pipelines: Sequence[Path] = ()
    signs_in: bool = False
    """Whether users sign in with their own user name and password, which replace those in the
    options.
    """
    lifetime: Lifetime = Lifetime()
    """How long the sessions of signed-in users last."""


async def serve(
    servers: str,
    mode: Mode,
    address: Address,
    on_ready: Callable[[str], None],
) -> None:
    """Serve the console of a cluster until SIGINT or SIGTERM.

    `on_ready` is called with the console's URL. Raises ConfigError if the console cannot listen on
    the address, and a KafkaError or Unreachable if the cluster cannot be reached at the start.
    """
    stopping = asyncio.Event()
    sock = listen(address)
    with contextlib.closing(sock):
        host, port = address.host, sock.getsockname()[1]
        names = names_of(host)
        served: ClusterWatch | Door
        if mode.signs_in:
            # Browsers send a cookie to all ports of a host, so the cookie's name contains the port.
            cookie = f"barnabas-console-{port}"
            served = Door(servers, mode.options, cookie, mode.lifetime, may_write=mode.may_write)
            app: ASGIApp = Guard(served, names, may_write=mode.may_write, signs_in=True)
        else:
            served = ClusterWatch(servers, mode.options)
            await served.start()
            options = mode.options if mode.may_write else None
            app = application(served, stopping, names, options, mode.pipelines)
        try:
            await serve_until(
                stopping, served.run(), app, sock, lambda: on_ready(url_of(sock, host))
            )
        finally:
            await served.close()


def url_of(sock: socket.socket, host: str) -> str:
    """Return the URL of a listening socket, with the host as the user gave it."""
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{sock.getsockname()[1]}/"


def names_of(host: str) -> list[str]:
    """Return the host names by which browsers may address a server that listens on this host."""
    return [host] if is_local(host) else [host, socket.gethostname(), socket.getfqdn()]


def is_local(host: str) -> bool:
    """Return whether only processes on this machine can connect to this host."""
    if host in LOCAL_NAMES:
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


async def serve_until(
    stopping: asyncio.Event,
    work: Coroutine[Any, Any, object],
    app: ASGIApp,
    sock: socket.socket,
    on_ready: Callable[[], None],
) -> None:
    """Serve, and do the work that the application needs, until a signal arrives, `stopping` is set,
    or the work ends.
    """
    set_on_signals(stopping)
    async with serving(WebServer(app, "h11", _MOST_CONNECTIONS, _STOP_S), sock, stopping):
        on_ready()
        await race(work, stopping.wait())


def listen(address: Address) -> socket.socket:
    """Return a listening socket. Raises ConfigError."""
    host, port = address
    try:
        found = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE | socket.AI_ADDRCONFIG
        )
    except OSError as error:
        raise ConfigError(f"--host {host}: {error.strerror or error}") from error
    # If a name has addresses of both kinds, browsers try both.
    family, _, _, _, chosen = min(found, key=lambda each: each[0] != socket.AF_INET)
    try:
        return socket.create_server(chosen[:2], family=family, backlog=_BACKLOG)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise ConfigError(
                f"--port {port}: another process listens on it; choose another one, or 0 for any"
            ) from error
        raise ConfigError(f"--host {host} --port {port}: {error.strerror or error}") from error
