"""Implements `kafka-dump-log.sh`, also known as the class DumpLogSegments."""

from __future__ import annotations

from pathlib import PurePath

from barnabas.cli.kafka.options import Given, Option, flags, values
from barnabas.cli.kafka.tool import Line, NotCovered, Retired, Tool, run_ours

_DECODERS = ("offsets-decoder", "transaction-log-decoder")
_MISSING = {
    "cluster-metadata-decoder": "there are no logs of a KRaft quorum",
    "remote-log-metadata-decoder": "there is no tiered storage",
    "key-decoder-class": "decoders are Java classes, which cannot be run",
    "value-decoder-class": "decoders are Java classes, which cannot be run",
    "skip-record-metadata": "`barnabas consume` prints values alone",
    "max-bytes": "`barnabas dump FILE | head` prints the first batches",
}
_INTERNAL = ("__consumer_offsets-", "__transaction_state-")


def explain(given: Given) -> list[Line]:
    """Return the equivalent `barnabas` command."""
    files = given.required_text("files").split(",")
    for name, reason in _MISSING.items():
        if name in given:
            raise NotCovered(f"--{name}: {reason}; leave it out")
    # Both options check only indexes, whereas our command runs all of its checks on a file.
    if "verify-index-only" in given or "index-sanity-check" in given:
        return [["dump", "--verify", *files]]
    has_decoder = any(name in given for name in _DECODERS)
    # In Kafka, a decoder implies --print-data-log.
    line = ["dump"]
    if "print-data-log" in given or has_decoder:
        line.append("--records")
        # Kafka decodes records of internal topics only with a decoder. Our command recognises them
        # by the directory name, and decodes them unless bytes are requested.
        if not has_decoder and any(_is_internal(file) for file in files):
            line.append("--raw")
    if "deep-iteration" in given:
        line.append("--deep-iteration")
    return [[*line, *files]]


def _is_internal(file: str) -> bool:
    return PurePath(file).parent.name.startswith(_INTERNAL)


def run(given: Given) -> int:
    """Print the files with our command, which prints what Kafka prints."""
    return min(run_ours(explain(given)), 1)


TOOL = Tool(
    "This tool helps to parse a log file and dump its contents to the console.",
    (
        *flags(
            "cluster-metadata-decoder deep-iteration index-sanity-check offsets-decoder "
            "print-data-log remote-log-metadata-decoder skip-record-metadata "
            "transaction-log-decoder verify-index-only"
        ),
        *values("files=FILE,... max-bytes=BYTES max-message-size=BYTES"),
        Option("key-decoder-class", "CLASS", is_value_optional=True),
        Option("value-decoder-class", "CLASS", is_value_optional=True),
    ),
    explain,
    run,
    {"print-data": Retired("Kafka calls it --print-data-log", "print-data-log", False)},
)
