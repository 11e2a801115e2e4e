"""Implements `kafka-verifiable-producer.sh` and `kafka-verifiable-consumer.sh` with our commands.

The commands print the same events as the scripts.
"""

from __future__ import annotations

from barnabas.cli.kafka.options import Given, flags, values
from barnabas.cli.kafka.tool import (
    OLD_SERVERS,
    ZOOKEEPER,
    Line,
    NotCovered,
    Tool,
    at_servers,
    file_configs,
    flag_words,
    option_words,
    run_ours,
)


def _properties(given: Given, client: str) -> Line:
    """Return our options for the configs in the `--producer.config` or `--consumer.config` file."""
    configs = file_configs(given, f"{client}.config")
    configs.pop("bootstrap.servers", None)
    return [
        word
        for name, value in configs.items()
        for word in (f"--{client}-property", f"{name}={value}")
    ]


def explain_producer(given: Given) -> list[Line]:
    """Return the equivalent `barnabas` command."""
    line = ["verifiable-producer", given.required_text("topic")]
    most = given.number("max-messages")
    if most is not None and most >= 0:  # -1 means until stopped
        line += ["--max-messages", str(most)]
    pace = given.number("throughput")
    # Kafka's default of -1 means as fast as possible.
    if pace is not None and pace >= 0:
        line += ["--throughput", str(pace)]
    created_ms = given.number("message-create-time", -1, 2**63 - 1)
    if created_ms is not None and created_ms >= 0:
        line += ["--message-create-time", str(created_ms)]
    for option in ("acks", "value-prefix", "repeating-keys"):
        line += option_words(given, option)
    return [[*line, *_properties(given, "producer"), *at_servers(given)]]


def explain_consumer(given: Given) -> list[Line]:
    """Return the equivalent `barnabas` command. Raises NotCovered for the newer group protocol."""
    protocol = given.text("group-protocol")
    # Barnabas lacks the KIP-848 protocol.
    if "group-remote-assignor" in given or (protocol or "classic").lower() != "classic":
        raise NotCovered("only the classic group protocol is supported: --group-protocol classic")
    line = ["verifiable-consumer", given.required_text("topic"), "--group-id"]
    line.append(given.required_text("group-id"))
    most = given.number("max-messages")
    if most is not None and most >= 0:
        line += ["--max-messages", str(most)]
    for option in ("group-instance-id", "session-timeout", "reset-policy"):
        line += option_words(given, option)
    strategy = given.text("assignment-strategy")
    if strategy is not None:
        line += ["--assignment-strategy", strategy]
    line += flag_words(given, "verbose", "enable-autocommit")
    return [[*line, *_properties(given, "consumer"), *at_servers(given)]]


def run_producer(given: Given) -> int:
    """Send numbers with our command, which prints the same events."""
    return min(run_ours(explain_producer(given)), 1)


def run_consumer(given: Given) -> int:
    """Consume in a group with our command, which prints the same events."""
    return min(run_ours(explain_consumer(given)), 1)


TOOLS = {
    "kafka-verifiable-producer": Tool(
        "This tool sends increasing numbers and prints the outcome of each as JSON.",
        values(
            "acks=ACKS bootstrap-server=HOST:PORT max-messages=N message-create-time=MS "
            "producer.config=FILE repeating-keys=N throughput=N topic=TOPIC value-prefix=TEXT"
        ),
        explain_producer,
        run_producer,
        {"zookeeper": ZOOKEEPER},
        OLD_SERVERS,
        abbreviates=True,
    ),
    "kafka-verifiable-consumer": Tool(
        "This tool consumes in a group and prints each event as JSON.",
        (
            *flags("enable-autocommit verbose"),
            *values(
                "assignment-strategy=CLASS bootstrap-server=HOST:PORT consumer.config=FILE "
                "group-id=GROUP group-instance-id=ID group-protocol=PROTOCOL "
                "group-remote-assignor=NAME max-messages=N reset-policy=POLICY "
                "session-timeout=MS topic=TOPIC"
            ),
        ),
        explain_consumer,
        run_consumer,
        {"zookeeper": ZOOKEEPER},
        OLD_SERVERS,
        abbreviates=True,
    ),
}
