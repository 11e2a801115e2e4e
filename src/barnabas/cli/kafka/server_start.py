"""Implements `kafka-server-start.sh`, whose arguments `barnabas server start` accepts unchanged."""

from __future__ import annotations

from barnabas.cli.kafka.options import BadCommandLine, Given, flags, values
from barnabas.cli.kafka.tool import Line, Tool
from barnabas.cli.server.start_command import start


def explain(given: Given) -> list[Line]:
    """Return the equivalent `barnabas` command."""
    if len(given.others) != 1:
        raise BadCommandLine(
            "USAGE: kafka-server-start.sh [-daemon] server.properties [--override property=value]*"
        )
    line = ["server", "start", *["-daemon"] * ("daemon" in given), *given.others]
    for override in given.texts("override"):
        line += ["--override", override]
    return [line]


def run(given: Given) -> int:
    """Run a broker."""
    (line,) = explain(given)
    return min(start(line[2:]), 1)


TOOL = Tool(
    "Run a broker until SIGTERM or Ctrl-C; with -daemon in the background.",
    (*flags("daemon loggc"), *values("name=NAME override=NAME=VALUE")),
    explain,
    run,
    operands="server.properties",
)
