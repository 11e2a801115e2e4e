"""`kafka-reassign-partitions.sh`."""

from __future__ import annotations

from barnabas.cli.kafka.options import Given, flags, values
from barnabas.cli.kafka.tool import (
    ZOOKEEPER,
    Line,
    Tool,
    at_servers,
    flagged,
    named,
    no_client_configs,
    run_ours,
)

_ACTIONS = ("generate", "execute", "verify", "cancel", "list")


def explain(given: Given) -> list[Line]:
    """Our command for the line."""
    action = given.one_of(*_ACTIONS)
    no_client_configs(given)
    return [
        [
            *("reassign", f"--{action}"),
            *named(given, "reassignment-json-file"),
            *named(given, "topics-to-move-json-file"),
            *named(given, "broker-list"),
            *flagged(given, "disable-rack-aware", "additional"),
            *named(given, "throttle"),
            *named(given, "replica-alter-log-dirs-throttle"),
            *flagged(given, "preserve-throttles"),
            *at_servers(given),
        ]
    ]


def run(given: Given) -> int:
    """Reassign; the lines of our command are Kafka's."""
    return min(run_ours(explain(given)), 1)


TOOL = Tool(
    "This tool helps to move topic partitions between replicas.",
    (
        *flags(
            "additional cancel disable-rack-aware execute generate list preserve-throttles verify"
        ),
        *values(
            "bootstrap-server=HOST:PORT broker-list=ID,ID command-config=FILE "
            "reassignment-json-file=FILE replica-alter-log-dirs-throttle=BYTES_PER_S "
            "throttle=BYTES_PER_S timeout=MS topics-to-move-json-file=FILE"
        ),
    ),
    explain,
    run,
    {"zookeeper": ZOOKEEPER},
)
