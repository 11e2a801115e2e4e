"""Implements `kafka-server-stop.sh`, which stops a broker and waits for it to end.

Kafka's script signals every broker on the machine. This tool stops the broker that the properties
file describes, or the only broker if no file is given. It refuses to choose among several brokers.
"""

from __future__ import annotations

from pathlib import Path

import click

from barnabas.cli.complaint import complain
from barnabas.cli.kafka.options import Given, values
from barnabas.cli.kafka.tool import Line, NotCovered, Tool
from barnabas.cli.main import EXIT_FAILURE, EXIT_OK
from barnabas.cli.server.stop import CannotStop, Selection, directory_of, stop

_WHO = "kafka-server-stop.sh"
_TIMEOUT_MS = 60_000
_NONE = "no server to stop"


def explain(given: Given) -> list[Line]:
    """Return the equivalent `barnabas` command."""
    for name in ("process-role", "node-id"):
        if name in given:
            raise NotCovered(
                f"--{name}: choose a broker with `barnabas server stop --dir DIR` or --port PORT"
            )
    return [["server", "stop", *given.others[:1]]]


def run(given: Given) -> int:
    """Stop the broker. Like Kafka's script, print nothing on success."""
    explain(given)
    directory: Path | None = None
    try:
        if given.others:
            directory = directory_of(given.others[0])
        stop(Selection(directory), _TIMEOUT_MS)
    except CannotStop as error:
        # Kafka's script prints this on standard output, and exits with 1.
        if str(error) == _NONE:
            click.echo("No kafka server to stop")
        else:
            complain(_WHO, str(error))
        return EXIT_FAILURE
    return EXIT_OK


TOOL = Tool(
    "Stop the broker of this machine, and wait until it has stopped.",
    values("process-role=ROLE node-id=ID"),
    explain,
    run,
    operands="[server.properties]",
    runs_alone=True,
)
