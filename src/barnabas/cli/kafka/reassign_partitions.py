"""Implements `kafka-reassign-partitions.sh` with `barnabas reassign`. With --zookeeper, it works
like the tool in 2.3.1.
"""

from __future__ import annotations

from barnabas.cli.kafka import zookeeper_reassignment
from barnabas.cli.kafka.options import Given, flags, values
from barnabas.cli.kafka.tool import (
    Line,
    Tool,
    at_servers,
    flag_words,
    option_words,
    run_ours,
)
from barnabas.cli.kafka.zookeeper_brokers import (
    ZOOKEEPER_OPTION,
    cluster_of,
    warn_of_zookeeper,
    with_brokers,
)
from barnabas.cli.options import run_client

_ACTIONS = ("generate", "execute", "verify", "cancel", "list")


def explain(given: Given) -> list[Line]:
    """Return the equivalent `barnabas` command."""
    action = given.one_of(*_ACTIONS)
    return [
        [
            *("reassign", f"--{action}"),
            *option_words(given, "reassignment-json-file"),
            *option_words(given, "topics-to-move-json-file"),
            *option_words(given, "broker-list"),
            *flag_words(given, "disable-rack-aware", "additional"),
            *option_words(given, "throttle"),
            *option_words(given, "replica-alter-log-dirs-throttle"),
            *flag_words(given, "preserve-throttles"),
            *at_servers(_at_brokers(given)),
        ]
    ]


def run(given: Given) -> int:
    """Reassign with our command, which prints what Kafka 3.9 prints."""
    action = given.one_of(*_ACTIONS)
    if ZOOKEEPER_OPTION not in given:
        return min(run_ours(explain(given)), 1)
    # With --zookeeper, these two actions print what 2.3.1 prints. The other actions are unchanged
    # or newer.
    old = {"execute": zookeeper_reassignment.execute, "verify": zookeeper_reassignment.verify}
    # Check this before the warning, so that an invalid command line prints only its error.
    plan = zookeeper_reassignment.plan_of_line(given, action) if action in old else None
    warn_of_zookeeper()
    if plan is None:
        return min(run_ours(explain(given)), 1)
    return run_client(old[action](_at_brokers(given), plan))


def _at_brokers(given: Given) -> Given:
    """Return the options with the brokers' addresses. For a plan with log_dirs, Kafka 2.3 accepts
    brokers' addresses together with --zookeeper.
    """
    if ZOOKEEPER_OPTION not in given or "bootstrap-server" in given:
        return given
    return with_brokers(given, cluster_of(given))


TOOL = Tool(
    "This tool helps to move topic partitions between replicas.",
    (
        *flags(
            "additional cancel disable-rack-aware execute generate list preserve-throttles verify"
        ),
        *values(
            "bootstrap-server=HOST:PORT broker-list=ID,ID command-config=FILE "
            "reassignment-json-file=FILE replica-alter-log-dirs-throttle=BYTES_PER_S "
            "throttle=BYTES_PER_S timeout=MS topics-to-move-json-file=FILE "
            "zookeeper=HOST:PORT[/CHROOT]"
        ),
    ),
    explain,
    run,
)
