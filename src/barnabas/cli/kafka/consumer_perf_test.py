"""Implements `kafka-consumer-perf-test.sh` with `barnabas perf consume`."""

from __future__ import annotations

import click

from barnabas.cli.complaint import warn
from barnabas.cli.kafka.options import Given, Option, flags, values
from barnabas.cli.kafka.tool import (
    NEW_CONSUMER,
    OLD_SERVERS,
    ZOOKEEPER,
    Line,
    NotCovered,
    Tool,
    at_servers,
    flag_words,
    option_words,
    run_ours,
)
from barnabas.config import load_properties

_WHO = "kafka-consumer-perf-test.sh"
_MISSING = {
    "date-format": "times have the format yyyy-MM-dd HH:mm:ss:SSS",
    "print-metrics": "it prints only the summary",
}


def explain(given: Given) -> list[Line]:
    """Return the equivalent `barnabas` command."""
    given.need("topic", "messages")
    for name, reason in _MISSING.items():
        if name in given:
            raise NotCovered(
                f"--{name}: not supported by `barnabas perf consume`: {reason}; leave it out"
            )
    line = ["perf", "consume", given.required_text("topic")]
    for option in ("messages", "timeout", "reporting-interval"):
        line += option_words(given, option)
    line += flag_words(given, "from-latest", "show-detailed-stats", "hide-header")
    path = given.text("consumer.config")
    configs = {} if path is None else load_properties(path)
    # Ignore the group, because our command assigns partitions and joins no group.
    for name in ("bootstrap.servers", "group.id"):
        configs.pop(name, None)
    size = given.text("fetch-size")
    if size is not None:
        configs["max.partition.fetch.bytes"] = size
    for name, value in configs.items():
        line += ["--consumer-config", f"{name}={value}"]
    return [[*line, *at_servers(given)]]


def run(given: Given) -> int:
    """Read the records with our command, which prints what Kafka prints."""
    line = explain(given)
    if "threads" in given or "num-fetch-threads" in given:
        # Kafka's tool prints this warning among its results.
        click.echo(
            "WARNING: option [threads] and [num-fetch-threads] have been deprecated and will be "
            "ignored by the test"
        )
    if "group" in given:
        warn(_WHO, "--group: this tool reads all partitions, joins no group and commits nothing")
    # Kafka's tools exit with 1 for any error.
    return min(run_ours(line), 1)


TOOL = Tool(
    "This tool is used to verify the consumer performance.",
    (
        *flags("from-latest hide-header print-metrics show-detailed-stats"),
        *values(
            "bootstrap-server=HOST:PORT consumer.config=FILE date-format=FORMAT fetch-size=BYTES "
            "group=GROUP messages=N num-fetch-threads=N reporting-interval=MS "
            "socket-buffer-size=BYTES threads=N topic=TOPIC"
        ),
        Option("timeout", "MS", is_value_optional=True),
    ),
    explain,
    run,
    {
        "zookeeper": ZOOKEEPER,
        "new-consumer": NEW_CONSUMER,
    },
    OLD_SERVERS,
)
