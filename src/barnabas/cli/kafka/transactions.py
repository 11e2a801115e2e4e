"""Implements `kafka-transactions.sh` with `barnabas transactions`, which prints Kafka's tables
(KIP-664)."""

from __future__ import annotations

from barnabas.cli.kafka.options import BadCommandLine, Given, values
from barnabas.cli.kafka.tool import (
    BROKER_LIST,
    Line,
    NotCovered,
    Tool,
    at_servers,
    option_words,
    run_ours,
)

_COMMANDS = {
    "list": ("duration-filter",),
    "describe": ("transactional-id",),
    "describe-producers": ("topic", "partition"),
    "abort": (
        "topic",
        "partition",
        "start-offset",
        "producer-id",
        "producer-epoch",
        "coordinator-epoch",
    ),
    "find-hanging": ("broker-id", "max-transaction-timeout", "topic", "partition"),
}
"""Maps each subcommand to the options that ours shares."""


def explain(given: Given) -> list[Line]:
    """Return the equivalent `barnabas` command."""
    if len(given.others) != 1 or given.others[0] not in _COMMANDS:
        raise BadCommandLine(
            f"{' '.join(given.others) or 'no command'}: give one of {', '.join(_COMMANDS)}"
        )
    (command,) = given.others
    # Kafka can query any replica (KIP-664). Our command queries the leader, because its state is
    # authoritative.
    if command == "describe-producers" and "broker-id" in given:
        raise NotCovered("--broker-id: our command asks the leader; omit this option")
    for name in given:
        # In argparse4j, each subcommand has its own options, but our table contains the options of
        # all subcommands.
        if name not in (*_COMMANDS[command], "bootstrap-server", "command-config"):
            raise BadCommandLine(f"unrecognized arguments: '--{name}' does not go with {command}")
    options = [word for name in _COMMANDS[command] for word in option_words(given, name)]
    return [["transactions", command, *options, *at_servers(given)]]


def run(given: Given) -> int:
    """Run the action with our command, which prints the same tables."""
    return min(run_ours(explain(given)), 1)


TOOL = Tool(
    "This tool is used to analyze the transactional state of producers in the cluster.",
    values(
        "bootstrap-server=HOST:PORT broker-id=ID command-config=FILE coordinator-epoch=N "
        "duration-filter=MS max-transaction-timeout=MINUTES partition=N producer-epoch=N "
        "producer-id=ID start-offset=OFFSET topic=TOPIC transactional-id=ID"
    ),
    explain,
    run,
    {"broker-list": BROKER_LIST},
    abbreviates=True,
    operands="list|describe|describe-producers|abort|find-hanging",
)
