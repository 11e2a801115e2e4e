"""`kafka-leader-election.sh`."""

from __future__ import annotations

from barnabas.cli.kafka.options import BadCommandLine, Given, flags, values
from barnabas.cli.kafka.tool import (
    BROKER_LIST,
    ZOOKEEPER,
    Line,
    Tool,
    at_servers,
    flagged,
    named,
    no_client_configs,
    run_ours,
)

_TYPES = ("preferred", "unclean")


def explain(given: Given) -> list[Line]:
    """Our command for the line."""
    kind = given.required("election-type").lower()
    if kind not in _TYPES:
        raise BadCommandLine(f"--election-type {kind}: not one of {', '.join(_TYPES)}")
    given.one_of("topic", "all-topic-partitions", "path-to-json-file")
    if ("topic" in given) != ("partition" in given):
        raise BadCommandLine("Option partition is only allowed if topic is used, and the reverse")
    no_client_configs(given, "admin.config")
    return [
        [
            *("elect-leaders", "--election-type", kind),
            *named(given, "topic"),
            *named(given, "partition"),
            *named(given, "path-to-json-file"),
            *flagged(given, "all-topic-partitions"),
            *at_servers(given),
        ]
    ]


def run(given: Given) -> int:
    """Elect; the lines of our command are Kafka's."""
    return min(run_ours(explain(given)), 1)


TOOL = Tool(
    "This tool attempts to elect a new leader for a set of topic partitions. The type of elections "
    "supported are preferred replicas and unclean replicas.",
    (
        *flags("all-topic-partitions"),
        *values(
            "admin.config=FILE bootstrap-server=HOST:PORT election-type=PREFERRED|UNCLEAN "
            "partition=N path-to-json-file=FILE topic=TOPIC"
        ),
    ),
    explain,
    run,
    {"broker-list": BROKER_LIST, "zookeeper": ZOOKEEPER},
)
