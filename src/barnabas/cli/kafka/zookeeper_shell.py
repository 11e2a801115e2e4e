"""Implements `zookeeper-shell.sh HOST get PATH`, which reads a cluster's tree in ZooKeeper."""

from __future__ import annotations

import sys

import click

from barnabas.cli.kafka.options import BadCommandLine, Given, flags, values
from barnabas.cli.kafka.tool import Line, NotCovered, Tool
from barnabas.cli.main import EXIT_FAILURE, EXIT_OK
from barnabas.cli.metadata.tree_source import TreeSource, open_zookeeper
from barnabas.cli.options import run_client
from barnabas.cluster.store import Znode

_READS = ("get", "ls")
_DIRECTORY = (
    "a broker without ZooKeeper keeps its tree on disk: barnabas metadata get PATH --dir DIR"
)


def _read(given: Given) -> tuple[str, str, str]:
    """Return ZooKeeper's address, the command and the path. Raises BadCommandLine or NotCovered."""
    if not given.others:
        raise BadCommandLine(
            "USAGE: zookeeper-shell.sh zookeeper_host:port[/path] get|ls PATH; " + _DIRECTORY
        )
    address, *command = given.others
    # Without a command, ZooKeeper's shell would read commands from standard input.
    if not command:
        raise NotCovered(
            f"there is no interactive shell: barnabas zookeeper-shell.sh {address} ls /"
        )
    if command[0] not in _READS:
        raise NotCovered(
            f"{command[0]}: only {' and '.join(_READS)} are supported; other commands change "
            "topics, configs and offsets, see barnabas --help"
        )
    if len(command) != 2:
        raise BadCommandLine(f"{command[0]}: give one path, such as /brokers/ids")
    if not command[1].startswith("/"):
        raise BadCommandLine(f"Path must start with / character: {command[1]}")
    return address, command[0], command[1]


def explain(given: Given) -> list[Line]:
    """Return the equivalent `barnabas` command."""
    address, command, path = _read(given)
    if "s" in given and command == "ls":
        raise NotCovered("ls -s: `barnabas metadata get PATH --stat` shows these numbers")
    options = ["--stat"] * ("s" in given) + ["--recursive"] * ("R" in given)
    return [["metadata", command, path, *options, "--zookeeper-connect", address]]


def run(given: Given) -> int:
    """Print a node as ZooKeeper's shell does."""
    address, command, path = _read(given)
    # With these options, ZooKeeper also prints the node's stat, or orders paths differently.
    if "s" in given or "R" in given:
        raise NotCovered(
            "-s and -R print a different layout here; --explain prints our command for them"
        )
    click.echo(f"Connecting to {address}")
    node = run_client(_node(address, path))
    # ZooKeeper's client prints its connection event before the response.
    click.echo("\nWATCHER::\n\nWatchedEvent state:SyncConnected type:None path:null")
    if node is None:
        click.echo(f"Node does not exist: {path}", err=True)
        return EXIT_FAILURE
    if command == "ls":
        click.echo(f"[{', '.join(sorted(node.children))}]")
        return EXIT_OK
    sys.stdout.flush()
    sys.stdout.buffer.write((b"null" if node.data is None else node.data) + b"\n")
    return EXIT_OK


async def _node(address: str, path: str) -> Znode | None:
    store = await open_zookeeper(TreeSource(address, None).required_zookeeper())
    try:
        return await store.read(path)
    finally:
        await store.close()


TOOL = Tool(
    "Read ZooKeeper's tree: " + _DIRECTORY,
    (*flags("s R"), *values("server=HOST:PORT")),
    explain,
    run,
    operands="HOST:PORT[/CHROOT] get|ls PATH",
)
