"""Implements `zookeeper-server-start.sh`, `zookeeper-server-stop.sh`, and ZooKeeper's own
`zkServer.sh`."""

from __future__ import annotations

import os
from pathlib import Path

import click

from barnabas.cli.kafka import zookeeper_process as zookeeper
from barnabas.cli.kafka.options import BadCommandLine, Given, flags, values
from barnabas.cli.kafka.tool import Line, NotCovered, Tool
from barnabas.cli.main import EXIT_FAILURE, EXIT_OK

_NO_COMMAND = (
    "`barnabas` has no command of its own for this: a broker needs no ZooKeeper, and `barnabas "
    "cluster start` starts the one that several brokers need"
)
_ZK_COMMANDS = ("start", "start-foreground", "stop", "status", "restart")
_CONFIG_NAMES = ("zoo.cfg", "zookeeper.properties")
_DEFAULT_DIRECTORY = "/etc/zookeeper/conf"


def _explain(given: Given) -> list[Line]:
    raise NotCovered(_NO_COMMAND)


def _run_start(given: Given) -> int:
    """Run the server until it is stopped, or start it in the background with -daemon."""
    if len(given.others) != 1:
        raise BadCommandLine(
            "USAGE: zookeeper-server-start.sh [-daemon] zookeeper.properties (`barnabas "
            "install-scripts DIR` writes such a file)"
        )
    server = zookeeper.server_of(Path(given.others[0]))
    if "daemon" not in given:
        return zookeeper.run(server)
    pid = zookeeper.start(server)
    click.echo(f"ZooKeeper listens on {server.address}\nprocess {pid}, its log is {server.log}")
    return EXIT_OK


def _run_stop(given: Given) -> int:
    """Stop the server that the properties file describes, or the only server if no file is
    given.
    """
    if given.others:
        has_stopped = zookeeper.stop(zookeeper.server_of(Path(given.others[0])))
    else:
        # Kafka's script signals every ZooKeeper on the machine, but this tool refuses to choose
        # among several.
        found = list(zookeeper.processes())
        if len(found) > 1:
            raise zookeeper.CannotRun(
                f"several ZooKeepers are running, processes {', '.join(map(str, found))}: choose "
                "one by its properties file, as in zookeeper-server-stop.sh zookeeper.properties"
            )
        has_stopped = bool(found) and zookeeper.stop_process(found[0])
    if not has_stopped:
        click.echo("No zookeeper server to stop")
        return EXIT_FAILURE
    return EXIT_OK


def _run_zk_server(given: Given) -> int:
    """Run `zkServer.sh start [FILE]` or one of its other commands, and print what ZooKeeper's
    script prints.
    """
    command, *files = given.others or ("",)
    if command not in _ZK_COMMANDS or len(files) > 1:
        raise BadCommandLine(
            f"USAGE: zkServer.sh [--config DIR] {{{'|'.join(_ZK_COMMANDS)}}} [FILE]"
        )
    config = _config(given, files)
    click.echo(f"Using config: {config}", err=True)
    server = zookeeper.server_of(config)
    if command == "status":
        return _show_status(server)
    if command == "start-foreground":
        return zookeeper.run(server)
    # If no server is running, `restart` starts one, while `stop` exits with 1.
    if command != "start" and not _has_stopped(server) and command == "stop":
        return EXIT_FAILURE
    if command != "stop":
        zookeeper.start(server)
        click.echo("Starting zookeeper ... STARTED")
    return EXIT_OK


def _has_stopped(server: zookeeper.ZooKeeper) -> bool:
    has_stopped = zookeeper.stop(server)
    click.echo(f"Stopping zookeeper ... {'STOPPED' if has_stopped else 'no zookeeper to stop'}")
    return has_stopped


def _show_status(server: zookeeper.ZooKeeper) -> int:
    click.echo(
        f"Client port found: {server.port}. Client address: {server.host}. Client SSL: false."
    )
    mode = server.mode()
    click.echo(f"Mode: {mode}" if mode else "Error contacting service. It is probably not running.")
    return EXIT_OK if mode else EXIT_FAILURE


def _config(given: Given, files: list[str]) -> Path:
    """Return the named configuration file, or the first one in the configuration directory."""
    named = given.text("config") or os.environ.get("ZOOCFGDIR")
    directory = Path(named or _DEFAULT_DIRECTORY)
    if files:
        # As in ZooKeeper's script, this is a path, or a name in the configuration directory.
        path = Path(files[0])
        return path if path.exists() or not (directory / path).exists() else directory / path
    for name in _CONFIG_NAMES:
        if (directory / name).exists():
            return directory / name
    raise BadCommandLine(
        f"no {' or '.join(_CONFIG_NAMES)} in {directory}: name a file, zkServer.sh start FILE; "
        "`barnabas install-scripts DIR` writes one"
    )


TOOLS = {
    "zookeeper-server-start": Tool(
        "Run a ZooKeeper server until it is stopped; -daemon: in the background.",
        (*flags("daemon loggc"), *values("name=NAME")),
        _explain,
        _run_start,
        runs_alone=True,
        operands="zookeeper.properties",
    ),
    "zookeeper-server-stop": Tool(
        "Stop the ZooKeeper of a properties file, or the only one of this user.",
        (),
        _explain,
        _run_stop,
        runs_alone=True,
        operands="[zookeeper.properties]",
    ),
    "zkServer": Tool(
        "Start and stop a ZooKeeper server, or ask it whether it runs.",
        values("config=DIR"),
        _explain,
        _run_zk_server,
        runs_alone=True,
        operands=f"{'|'.join(_ZK_COMMANDS)} [FILE]",
    ),
}
