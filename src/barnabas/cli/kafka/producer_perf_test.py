"""Implements `kafka-producer-perf-test.sh` with `barnabas perf produce`."""

from __future__ import annotations

from barnabas.cli.kafka.options import BadCommandLine, Given, Option, flags, values
from barnabas.cli.kafka.tool import Line, NotCovered, Retired, Tool, option_words, run_ours
from barnabas.cli.options import key_values
from barnabas.config import load_properties

_MISSING = {
    "payload-file": "payloads are random letters of --record-size",
    "payload-monotonic": "payloads are random letters of --record-size",
    "payload-delimiter": "payloads are random letters of --record-size",
    "transactional-id": "it does not use transactions",
    "transaction-duration-ms": "it does not use transactions",
    "print-metrics": "it prints only the summary",
}


def explain(given: Given) -> list[Line]:
    """Return the equivalent `barnabas` command."""
    given.need("topic", "num-records", "throughput")
    for name, reason in _MISSING.items():
        if name in given:
            raise NotCovered(
                f"--{name}: not supported by `barnabas perf produce`: {reason}; leave it out"
            )
    # Check this after the unsupported options, because Kafka also accepts a payload file in place
    # of a size.
    given.need("record-size")
    path = given.text("producer.config")
    configs = {} if path is None else load_properties(path)
    configs |= key_values(given.texts("producer-props"), "--producer-props")
    # Kafka 3.9's tool has no --bootstrap-server, so the address is given as a producer config.
    address = given.text("bootstrap-server") or configs.get("bootstrap.servers")
    configs.pop("bootstrap.servers", None)
    if address is None:
        raise BadCommandLine("add --producer-props bootstrap.servers=localhost:9092")
    line = ["perf", "produce", given.required_text("topic")]
    for option in ("num-records", "record-size", "throughput"):
        line += option_words(given, option)
    for name, value in configs.items():
        line += ["--producer-config", f"{name}={value}"]
    return [[*line, "--bootstrap-server", address]]


def run(given: Given) -> int:
    """Send the records with our command, which prints what Kafka prints."""
    return min(run_ours(explain(given)), 1)


TOOL = Tool(
    "This tool is used to verify the producer performance.",
    (
        *flags("payload-monotonic print-metrics"),
        *values(
            "bootstrap-server=HOST:PORT num-records=N payload-delimiter=TEXT payload-file=FILE "
            "producer.config=FILE record-size=BYTES throughput=N topic=TOPIC "
            "transaction-duration-ms=MS transactional-id=ID"
        ),
        Option("producer-props", "NAME=VALUE", takes_several=True),
    ),
    explain,
    run,
    {
        "broker-list": Retired("Kafka takes it from --producer-props", "bootstrap-server"),
        "messages": Retired("Kafka calls it --num-records", "num-records"),
        "message-size": Retired("Kafka calls it --record-size", "record-size"),
    },
    abbreviates=True,
)
