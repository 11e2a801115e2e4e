"""Implements `barnabas server start`, which runs a broker in its own process.

When the broker is ready, the process prints a line on standard output. It logs to standard error,
and stops cleanly on SIGTERM and SIGINT. To start faster, the process imports only the modules that
the broker needs.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from barnabas.broker.network.listeners import exposures
from barnabas.broker.runtime.descriptors import allow_many
from barnabas.broker.runtime.process_log import LOG_FORMAT, final_line, formatter, log_handler
from barnabas.broker.runtime.sd_notify import READY, STOPPING, notify
from barnabas.broker.seams import interposed_seams, system_seams
from barnabas.broker.server import Server
from barnabas.config import BrokerConfig
from barnabas.errors import BarnabasError
from barnabas.net.loop import new_event_loop
from barnabas.storage.loading import LoadingStopped

if TYPE_CHECKING:
    from barnabas.broker.security.secure_setup import SecureSetup

_log = logging.getLogger("barnabas.broker")

_YOUNG_OBJECTS = 5_000


class Companion(Protocol):
    """The interface of an object that injects faults into a broker's requests and seams,
    for tests.
    """

    async def start(self, broker: Server) -> None:
        """Called when the broker is serving requests. If it raises ConfigError, the broker is
        stopped.
        """
        ...

    def close(self) -> None:
        """Called just before the broker is stopped."""
        ...


def run(
    config: BrokerConfig,
    started_at_s: float | None = None,
    companion: Companion | None = None,
    setup: SecureSetup | None = None,
    *,
    log_file: str | None = None,
) -> int:
    """Serve requests until a signal arrives, and return the exit code.

    `started_at_s` is the time at which the process was started, in seconds of `time.monotonic`. It
    is used for the ready line. `setup` is the security setup from which `config` was created. The
    broker creates credentials for the users in it. If `log_file` is given, the log is written to it
    instead of standard error.
    """
    allow_many()
    log_format, broker_id = config.str(LOG_FORMAT), config.int("broker.id")
    try:
        handler = log_handler(log_file)
    except OSError as error:
        reason = f"cannot write to the log file: {error}"
        sys.stderr.write(final_line(reason, log_format, broker_id))
        return 1
    handler.setFormatter(formatter(log_format, broker_id))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    began_at_s = time.monotonic() if started_at_s is None else started_at_s
    try:
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            return runner.run(_serve(config, began_at_s, companion, setup))
    except (BarnabasError, OSError) as error:
        sys.stderr.write(final_line(error, log_format, broker_id))
        return 1


def _ready_line(server: Server, ready_ms: int) -> str:
    is_exposed = bool(exposures(server.config, server.listeners))
    return (
        f"barnabas ready on {server.listeners[0].address_here} "
        f"(broker {server.broker_id}, {','.join(map(str, server.log_dirs))}, {ready_ms} ms"
        f"{'; no authentication, listening on all addresses' if is_exposed else ''})\n"
    )


def _end_of(server: Server) -> str:
    """Return the last line to print, which explains why the broker has failed."""
    assert server.failure is not None
    return final_line(server.failure.result(), server.config.str(LOG_FORMAT), server.broker_id)


def _introduction(setup: SecureSetup, server: Server) -> str:
    """Write the client config files for the `admin` user, and return the next steps to print."""
    setup.write_client_files(server.listeners[0].address_here)
    option = f"--command-config {setup.client_file}"
    return (
        f"  barnabas topics create test {option}\n"
        f"  barnabas users add alice --file alice.properties {option}\n"
        f"  barnabas acls add --user alice --producer --topic test {option}\n"
    )


def _keep_objects() -> None:
    gc.collect(1)  # because some of the new objects may be garbage
    gc.freeze()


async def _load_ahead() -> None:
    """Import the modules that the first producer and its topic need, so that no client has to wait
    for the imports.

    This is done after startup, so that the broker is ready sooner. Each step takes a few
    milliseconds, and other tasks run between the steps. A process that has run out of file
    descriptors cannot import anything, so this also imports the modules that the controller needs
    in an emergency.
    """
    import barnabas.records.control_records

    await asyncio.sleep(0)
    import barnabas.storage.batch_validation
    import barnabas.storage.segment

    await asyncio.sleep(0)
    import barnabas.storage.recovery

    await asyncio.sleep(0)
    import barnabas.broker.controller.log_ends
    import barnabas.broker.controller.topic_admin
    import barnabas.broker.partitions.replica
    import barnabas.replication.partition

    await asyncio.sleep(0)
    import barnabas.broker.handlers.api_versions
    import barnabas.broker.handlers.metadata

    await asyncio.sleep(0)
    import barnabas.broker.handlers.init_producer_id
    import barnabas.broker.handlers.produce  # noqa: F401  (loaded only)


async def _has_started(server: Server, stopping: asyncio.Event) -> bool:
    """Start the server unless a signal arrives first. Return whether the server was started.

    Startup may have to wait for ZooKeeper, for an earlier session of this broker to expire, or for
    a controller. Raises the same errors as `Server.start`.
    """
    starting = asyncio.ensure_future(server.start())
    watching = asyncio.ensure_future(_cancel(server, starting, stopping))
    try:
        await starting
    except asyncio.CancelledError:
        if not stopping.is_set():
            raise
        return False
    finally:
        watching.cancel()
    return True


async def _cancel(server: Server, starting: asyncio.Future[None], stopping: asyncio.Event) -> None:
    await stopping.wait()
    notify(STOPPING, os.environ)
    _log.info("stopping during startup broker=%d", server.broker_id)
    starting.cancel()


async def _serve(
    config: BrokerConfig,
    began_at_s: float,
    companion: Companion | None,
    setup: SecureSetup | None,
) -> int:
    loop = asyncio.get_running_loop()
    gc.freeze()  # without collecting first, because most objects of modules are never freed
    gc.enable()  # see `cli.main`
    stopping = asyncio.Event()
    seams = system_seams() if companion is None else interposed_seams()
    users = None if setup is None else setup.passwords
    server = Server(config, seams._replace(keep_objects=_keep_objects), first_users=users)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
        # The event loop does not run during log recovery, so it would handle the signal too late.
        signal.signal(number, lambda *_: server.stop_loading())
    try:
        if not await _has_started(server, stopping):
            _log.info("stopped before startup completed broker=%d", server.broker_id)
            return 0
    except LoadingStopped as reason:
        _log.info("%s broker=%d", reason, server.broker_id)
        return 0
    if companion is not None:
        try:
            await companion.start(server)
        except BaseException:
            await server.stop()
            raise
    introduction = "" if setup is None else _introduction(setup, server)
    # Write everything at once, because a reader may close the pipe after the first line.
    sys.stdout.write(
        _ready_line(server, round((time.monotonic() - began_at_s) * 1000)) + introduction
    )
    sys.stdout.flush()
    notify(READY, os.environ)
    assert server.failure is not None
    server.failure.add_done_callback(lambda _: stopping.set())
    with suppress(OSError):  # if descriptors run out, each module is imported when it is needed
        server.watch_delays()
        await _load_ahead()
    _keep_objects()
    # By default, the collector would run in vain after every twenty requests.
    gc.set_threshold(_YOUNG_OBJECTS)
    await stopping.wait()
    notify(STOPPING, os.environ)
    if companion is not None:
        companion.close()
    if server.is_hung:
        sys.stderr.write(_end_of(server))
        sys.stderr.flush()
        os._exit(1)  # stopping and the pools' threads would wait for the disk
    _log.info("stopping broker=%d", server.broker_id)
    await server.stop()
    if server.failure.done():
        sys.stderr.write(_end_of(server))
        return 1
    _log.info("stopped cleanly broker=%d", server.broker_id)
    return 0
