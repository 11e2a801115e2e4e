"""Implements `kafka-get-offsets.sh`, also known as the class GetOffsetShell."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

import click

from barnabas.cli.kafka.java_errors import java_message
from barnabas.cli.kafka.options import BadCommandLine, Given, flags, values
from barnabas.cli.kafka.tool import (
    OLD_SERVERS,
    ZOOKEEPER,
    Line,
    NotCovered,
    Tool,
    admin_of,
    at_servers,
    patterns,
    plain_names,
)
from barnabas.cli.main import EXIT_FAILURE, EXIT_OK
from barnabas.cli.offsets.command import offset_lines
from barnabas.cli.options import run_client
from barnabas.client.admin.admin import Admin
from barnabas.client.offsets import EARLIEST, LATEST, MAX_TIMESTAMP, OffsetAndTimestamp
from barnabas.errors import KafkaError
from barnabas.types import TopicPartition

_TIMES: Final = {
    "latest": LATEST,
    "earliest": EARLIEST,
    "max-timestamp": MAX_TIMESTAMP,
    "earliest-local": EARLIEST,  # every record is local without tiered storage
}
_WORDS: Final = {EARLIEST: "earliest", MAX_TIMESTAMP: "max-timestamp"}
_LOCAL, _TIERED = -4, -5
_RULE = re.compile(r"(?P<topic>[^:,]*)(?::(?:(?P<one>\d*)|(?P<low>\d*)-(?P<high>\d*)))?")

Matches = Callable[[TopicPartition], bool]


class Range(NamedTuple):
    """Describes a range of partitions, such as `topic:0-3`."""

    topic: re.Pattern[str]
    low: int
    high: int | None  # exclusive; None means no end

    def has(self, name: TopicPartition) -> bool:
        is_in_range = self.low <= name.partition and (
            self.high is None or name.partition < self.high
        )
        return is_in_range and self.topic.fullmatch(name.topic) is not None


def _time(given: Given) -> int:
    """Return the time on the command line, or the number that represents it in the protocol.

    Raises BadCommandLine or NotCovered.
    """
    text = given.text("time") or "latest"
    if text in _TIMES:
        return _TIMES[text]
    # KIP-1005 added an offset in tiered storage, which Barnabas lacks.
    if text in ("latest-tiered", str(_TIERED)):
        raise NotCovered(f"--time {text}: there is no tiered storage")
    if not re.fullmatch(r"-[1-4]|\d{1,18}", text):
        raise BadCommandLine(
            f"Malformed time argument {text}, please use -1 or latest / -2 or earliest / -3 or "
            "max-timestamp / -4 or earliest-local, or a unix timestamp in ms"
        )
    return EARLIEST if int(text) == _LOCAL else int(text)


def _filter(given: Given) -> Matches:
    """Return a predicate for the partitions that the options select. Raises BadCommandLine."""
    given.not_with("topic-partitions", "topic", "partitions")
    text = given.text("topic-partitions")
    if text is not None:
        rules = [_range(rule) for rule in text.split(",")]
        return lambda name: any(rule.has(name) for rule in rules)
    topic = patterns(given.text("topic") or ".*", "topic")
    numbers = _numbers(given.text("partitions"))
    return lambda name: (
        topic.fullmatch(name.topic) is not None and (numbers is None or name.partition in numbers)
    )


def _range(text: str) -> Range:
    found = _RULE.fullmatch(text)
    if found is None:
        raise BadCommandLine(
            f"--topic-partitions {text}: Invalid rule specification, not TOPIC:0-3"
        )
    topic = patterns(found["topic"] or ".*", "topic-partitions")
    # `topic:3` is one partition. As in Kafka (KIP-635), `topic:0-3` excludes 3.
    if found["one"]:
        return Range(topic, int(found["one"]), int(found["one"]) + 1)
    return Range(topic, int(found["low"] or 0), int(found["high"]) if found["high"] else None)


def _numbers(text: str | None) -> set[int] | None:
    if text is None or not text.strip():
        return None
    words = [word.strip() for word in text.split(",")]
    if not all(re.fullmatch(r"\d{1,9}", word) for word in words):
        raise BadCommandLine(
            f"--partitions expects a comma separated list of numeric partition ids, but received: "
            f"{text}"
        )
    return {int(word) for word in words}


def explain(given: Given) -> list[Line]:
    """Return the equivalent `barnabas` command."""
    _filter(given)  # rejects invalid options
    names = _names(given)
    line = ["offsets", *names]
    at = _time(given)
    if at != LATEST:
        line += ["--time", _WORDS.get(at, str(at))]
    if "exclude-internal-topics" in given:
        line.append("--exclude-internal")
    return [[*line, *at_servers(given)]]


def _names(given: Given) -> list[str]:
    """Return topics, or `topic:0,1`. Raises NotCovered for ranges, and for numbers without a
    topic.
    """
    text = given.text("topic-partitions")
    if text is not None:
        if not all(re.fullmatch(r"[A-Za-z0-9._-]+(:\d+)?", rule) for rule in text.split(",")):
            raise NotCovered(
                f"--topic-partitions {text}: our command accepts only TOPIC or TOPIC:0,1; without "
                "--explain, this line runs unchanged"
            )
        return text.split(",")
    topic, numbers = given.text("topic"), given.text("partitions")
    if topic is None and numbers:
        raise NotCovered("--partitions without --topic: our command accepts only TOPIC:0,1")
    if topic is None:
        return []
    names = plain_names(topic, "topic")
    return [f"{name}:{numbers}" for name in names] if numbers else names


def run(given: Given) -> int:
    """Print `topic:partition:offset` for each partition."""
    wanted, at = _filter(given), _time(given)
    return run_client(_print_offsets(given, wanted, at))


async def _print_offsets(given: Given, wanted: Matches, at: int) -> int:
    internal = "exclude-internal-topics" not in given
    async with admin_of(given) as admin:
        topics = await admin.describe_topics()
        # Kafka asks the leaders. Report a partition without a leader on standard error, and omit
        # it.
        led = {
            TopicPartition(topic.name, each.partition): each.leader >= 0
            for topic in topics
            if internal or not topic.is_internal
            for each in topic.partitions
        }
        chosen = sorted(filter(wanted, led))
        if not chosen:
            click.echo(
                "Error occurred: Could not match any topic-partitions with the specified filters",
                err=True,
            )
            return EXIT_FAILURE
        outcomes = await _outcomes(admin, [name for name in chosen if led[name]], at)
    for name in chosen:
        outcome = outcomes.get(name)
        if outcome is None:
            click.echo(f"Skip getting offsets for topic-partition {name}: no leader", err=True)
        elif isinstance(outcome, KafkaError):
            reason = java_message(outcome)
            click.echo(
                f"Skip getting offsets for topic-partition {name} due to error: {reason}", err=True
            )
        else:
            for line in offset_lines({name: outcome}):
                click.echo(line)
    return EXIT_OK


async def _outcomes(
    admin: Admin, names: Sequence[TopicPartition], at: int
) -> Mapping[TopicPartition, OffsetAndTimestamp | KafkaError]:
    """Look up all partitions in one request or, if any is rejected, one by one."""
    try:
        # A partition may be rejected, for example because the user lacks authorization. If so, look
        # up each partition separately.
        return await admin.list_offsets(dict.fromkeys(names, at))
    except KafkaError:
        outcomes: dict[TopicPartition, OffsetAndTimestamp | KafkaError] = {}
        for name in names:
            try:
                outcomes |= await admin.list_offsets({name: at})
            except KafkaError as error:
                outcomes[name] = error
        return outcomes


TOOL = Tool(
    "An interactive shell for getting topic-partition offsets.",
    (
        *flags("exclude-internal-topics"),
        *values(
            "bootstrap-server=HOST:PORT command-config=FILE max-wait-ms=MS offsets=N "
            "partitions=N,N time=TIME topic=TOPIC topic-partitions=TOPIC:N-N,..."
        ),
    ),
    explain,
    run,
    {"zookeeper": ZOOKEEPER},
    OLD_SERVERS,
)
