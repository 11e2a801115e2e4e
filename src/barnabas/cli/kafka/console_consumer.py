"""Implements `kafka-console-consumer.sh`, which prints the records of topics in Kafka's formats.

The tool never creates a missing topic, but waits for it. Its private group keeps its positions
across rebalances; see `cli.records.positions`.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Mapping
from typing import Any, BinaryIO, NamedTuple

import click

from barnabas.cli.kafka.formatters import (
    DEFAULT,
    is_default,
    layout_of,
    template_of,
    warn_if_old,
)
from barnabas.cli.kafka.message_layout import Layout, default_layout, deserializer
from barnabas.cli.kafka.options import BadCommandLine, Given, flags, values
from barnabas.cli.kafka.tool import (
    BROKER_LIST,
    NEW_CONSUMER,
    ZOOKEEPER,
    Line,
    NotCovered,
    Retired,
    Tool,
    at_servers,
    file_configs,
    flag_words,
    no_client_configs,
    option_words,
    own_options,
    patterns,
    servers,
)
from barnabas.cli.main import EXIT_FAILURE, EXIT_OK
from barnabas.cli.options import key_values, run_client
from barnabas.cli.records.consume_plan import own_group_id
from barnabas.cli.records.positions import Start, Subscribed, give_back, go_to
from barnabas.cli.records.silence import JOIN_MS, Silence
from barnabas.client.config import ClientConfig, ConsumerConfig
from barnabas.client.consumer.consumer import Consumer
from barnabas.client.consumer.fetched import ConsumerRecord
from barnabas.config import load_properties
from barnabas.errors import UnknownTopicOrPartition

_UNUSED = ("bootstrap.servers", "key.deserializer", "value.deserializer")
_ERROR = "ERROR Error processing message, terminating consumer process"
_TIMED_OUT = f"{_ERROR}: org.apache.kafka.common.errors.TimeoutException"
_POLL_MS = 1_000
_LEVELS = ("read_uncommitted", "read_committed")
_FIELDS = {
    "print.partition": "Partition:{partition}",
    "print.offset": "Offset:{offset}",
    "print.headers": "{headers}",
    "print.key": "{key}",
}
"""Maps properties to fields of our template."""


class Limits(NamedTuple):
    max_messages: int | None  # None means no limit
    timeout_ms: int | None  # milliseconds without records; None means no limit


class Wanted(NamedTuple):
    """Specifies what to read and how to show it."""

    start: Start | Subscribed
    limits: Limits
    layout: Layout
    skips_errors: bool


def _properties(given: Given) -> dict[str, str]:
    """Return the formatter's properties from the file and the command line."""
    path = given.text("formatter-config")
    own = {} if path is None else load_properties(path)
    # The command line overrides the file (KIP-840).
    own |= key_values(given.texts("property"), "--property")
    for option in ("key-deserializer", "value-deserializer"):
        name = given.text(option)
        if name is not None:
            own[option.replace("-", ".")] = name
    return own


def _check(given: Given) -> None:
    """Raise BadCommandLine if options contradict each other."""
    given.one_of("topic", "include")
    servers(given)
    if "partition" in given:
        if "topic" not in given:
            raise BadCommandLine("The topic is required when partition is specified: add --topic")
        if "from-beginning" in given and "offset" in given:
            raise BadCommandLine(
                "Options from-beginning and offset cannot be specified together: leave out one"
            )
    # Without a partition, an offset is meaningless, but --from-beginning is not.
    elif "offset" in given:
        raise BadCommandLine(
            "The partition is required when offset is specified: add --partition N"
        )
    level = given.text("isolation-level")
    if level is not None and level not in _LEVELS:
        raise BadCommandLine(f"--isolation-level {level}: not one of {', '.join(_LEVELS)}")


def _offset(given: Given) -> str | int:
    """Return the offset to start at. Raises BadCommandLine."""
    text = given.text("offset")
    if text is None:
        return "earliest" if "from-beginning" in given else "latest"
    lower = text.lower()
    if lower in ("earliest", "latest"):
        return lower
    # A non-negative long has at most 19 digits.
    if not re.fullmatch(r"\d{1,19}", text):
        raise BadCommandLine(
            f"The provided offset value '{text}' is incorrect. Valid values are 'earliest', "
            "'latest', or a non-negative long."
        )
    return int(text)


def _configs(given: Given) -> dict[str, str]:
    """Return the consumer configs from the file and the command line, which overrides the file.
    Raises NotCovered.
    """
    of_file = file_configs(given, "consumer.config")
    return {**of_file, **key_values(given.texts("consumer-property"), "--consumer-property")}


def _group(given: Given, configs: Mapping[str, str]) -> str | None:
    """Return the group specified on the command line. Raises BadCommandLine."""
    # Kafka accepts the same group in several places, but not two different groups.
    named_so = {given.text("group"), configs.get("group.id")} - {None}
    if len(named_so) > 1:
        raise BadCommandLine(
            "The group ids provided in different places (directly using '--group', via "
            "'--consumer-property', or via '--consumer.config') do not match."
        )
    if named_so and "partition" in given:
        raise BadCommandLine("Options group and partition cannot be specified together.")
    return next(iter(named_so), None)


def explain(given: Given) -> list[Line]:
    """Return the equivalent `barnabas` command."""
    _check(given)
    _group(given, _configs(given))
    _offset(given)
    no_client_configs(given, "consumer.config")
    topic = given.text("topic")
    line = ["consume", topic] if topic is not None else ["consume", *option_words(given, "include")]
    for option in ("group", "partition", "offset", "max-messages", "timeout-ms", "isolation-level"):
        line += option_words(given, option)
    line += [*flag_words(given, "from-beginning"), *option_words(given, "consumer-property")]
    return [[*line, *_format(given), *at_servers(given)]]


def _format(given: Given) -> Line:
    """Return our --format for the formatter and its properties."""
    name = given.text("formatter") or DEFAULT
    if not is_default(name):
        return ["--format", template_of(name)]
    own = _properties(given)
    # Our template prints raw bytes between fixed separators, so other formats have no equivalent.
    default_layout(own)  # rejects invalid options
    for option in ("key.deserializer", "value.deserializer", "headers.deserializer"):
        if deserializer(own.get(option)) is not bytes:
            raise NotCovered(f"{own[option]}: our command prints keys and values as they are")
    for option, default in (
        ("line.separator", "\n"),
        ("headers.separator", ","),
        ("null.literal", "null"),
    ):
        if own.get(option, default) != default:
            raise NotCovered(f"--property {option}: our command has no such option")
    shown = {each for each, text in own.items() if text.strip().lower() == "true"}
    # The template would contain a literal "CreateTime", which is wrong for topics with
    # LogAppendTime.
    if "print.timestamp" in shown:
        parts = ["CreateTime:{timestamp}"]
    else:
        parts = []
    parts += [part for each, part in _FIELDS.items() if each in shown]
    has_value = own.get("print.value", "true").strip().lower() == "true"
    if not parts and has_value:
        return []
    parts += ["{value}"] * has_value
    # In our template, \t and \\ are escapes.
    between = own.get("key.separator", "\t").replace("\\", "\\\\").replace("\t", "\\t")
    return ["--format", between.join(parts)]


def run(given: Given) -> int:
    """Print records until a limit is reached or Ctrl-C is pressed."""
    _check(given)
    configs = _configs(given)
    group = _group(given, configs)
    options = _options(given, configs, group)
    start = _start(given, is_own_group=group is None, reset=options["auto_offset_reset"])
    limits = Limits(given.number("max-messages", -1), given.number("timeout-ms", -1, 2**63 - 1))
    name = given.text("formatter") or DEFAULT
    wanted = Wanted(
        start, limits, layout_of(name, _properties(given)), "skip-message-on-error" in given
    )
    if "formatter" in given:
        warn_if_old(name)
    printer = Printer(sys.stdout.buffer, wanted)
    try:
        run_client(_print_all(Consumer(servers(given), **options), wanted, printer))
    except KeyboardInterrupt:
        pass  # the usual end
    except BadCommandLine as error:
        click.echo(
            f"ERROR Error processing message, terminating consumer process: {error}", err=True
        )
        printer.end()
        return EXIT_FAILURE
    printer.end()
    return EXIT_OK


def _start(given: Given, *, is_own_group: bool, reset: str) -> Start | Subscribed:
    """Return a start that assigns the given partition, or one that subscribes to the topics as a
    group member.
    """
    include, partition = given.text("include"), given.number("partition", 0)
    # --partition assigns the partition and joins no group (Kafka rejects it together with --group).
    if partition is not None:
        return Start(given.text("topic") or "", (partition,), _offset(given))
    topics = (given.text("topic") or "",) if include is None else patterns(include, "include")
    return Subscribed(topics, is_own_group, is_own_group and reset == "latest")


def _options(given: Given, configs: Mapping[str, str], group: str | None) -> dict[str, Any]:
    """Return the consumer's options. Raises BadCommandLine."""
    reset = configs.get("auto.offset.reset")
    # --from-beginning means `auto.offset.reset=earliest`; if both are given, they must not
    # contradict each other.
    if "from-beginning" in given and reset not in (None, "earliest"):
        raise BadCommandLine(
            f"Can't simultaneously specify --from-beginning and 'auto.offset.reset={reset}', "
            "please remove one option"
        )
    options: dict[str, Any] = {
        "client_id": "console-consumer",
        "isolation_level": given.text("isolation-level") or _LEVELS[0],
        "allow_auto_create_topics": False,  # a typing error must not create a topic
        "max_poll_records": 5_000,
        "auto_offset_reset": "earliest" if "from-beginning" in given else "latest",
    }
    # Like Kafka, generate a group id and disable commits, because no later run will use the group.
    if group is None and "partition" not in given:
        group = own_group_id()
        options["enable_auto_commit"] = False  # its commits would be useless
    options |= own_options(
        configs, (*ClientConfig._fields, *ConsumerConfig._fields), _UNUSED, "consumer"
    )
    if group is not None:
        options["group_id"] = group
    return options


class Printer:
    """Writes records to standard output and counts them."""

    def __init__(self, output: BinaryIO, wanted: Wanted) -> None:
        self._output = output
        self._layout = wanted.layout
        self._skips_errors = wanted.skips_errors
        self.count = 0

    def show(self, records: list[ConsumerRecord]) -> None:
        """Print records. Raises BadCommandLine if the layout cannot show a record."""
        for record in records:
            try:
                self._output.write(self._layout(record))
            # Kafka counts a record before formatting it, so the total includes records that are
            # skipped.
            except BadCommandLine:
                if not self._skips_errors:
                    raise
            self.count += 1
        self._output.flush()

    def end(self) -> None:
        self._output.flush()
        click.echo(f"Processed a total of {self.count} messages", err=True)


async def _print_all(consumer: Consumer, wanted: Wanted, printer: Printer) -> None:
    most, timeout_ms = wanted.limits
    async with consumer:
        limit_s = None if timeout_ms is None or timeout_ms < 0 else timeout_ms / 1000
        try:
            async with asyncio.timeout(limit_s):
                start = await _when_there(consumer, wanted.start)
        # In Kafka, the time without records includes the wait for the topic.
        except TimeoutError:
            click.echo(_TIMED_OUT, err=True)
            return
        await go_to(consumer, start)
        is_own_group = isinstance(start, Subscribed) and start.is_own_group
        limit_ms = None if timeout_ms is None or timeout_ms < 0 else timeout_ms
        silence = Silence(consumer, limit_ms, JOIN_MS if is_own_group else 0)
        while most is None or most < 0 or printer.count < most:
            wait_ms = silence.left_ms(_POLL_MS)
            if wait_ms <= 0:
                click.echo(_TIMED_OUT, err=True)
                return
            records = await consumer.poll(wait_ms)
            if records:
                silence.on_record()
            # A poll may return more records than requested. The offsets of the surplus must not be
            # committed.
            shown = records if most is None or most < 0 else records[: most - printer.count]
            try:
                printer.show(shown)
            except BaseException:
                give_back(consumer, records)
                raise
            give_back(consumer, records[len(shown) :])


async def _when_there(consumer: Consumer, start: Start | Subscribed) -> Start | Subscribed:
    """Like Kafka's tool, wait until the topic exists, so that its first record is printed."""
    topics = start.topics if isinstance(start, Subscribed) else (start.topic,)
    if isinstance(topics, re.Pattern):
        return start  # later matches are found by the metadata refresh
    (topic,) = topics
    # In an existing topic, "from now on" starts at its current end. All records of a topic created
    # later are new.
    if not await _has_waited(consumer, topic):
        return start
    if isinstance(start, Subscribed):
        return start._replace(later_topics=(topic,))
    return start._replace(origin="earliest") if start.origin == "latest" else start


async def _has_waited(consumer: Consumer, topic: str) -> bool:
    """Wait until the topic exists. Returns False if it already did."""
    has_waited = topic not in await consumer.list_topics([topic])
    is_warned = False
    # Kafka's consumer logs a warning for every attempt, but one is enough.
    while True:
        try:
            await consumer.partitions_for(topic)  # tries for a second before giving up
            return has_waited
        except UnknownTopicOrPartition as error:
            if not is_warned:
                click.echo(f"WARN waiting for topic {topic!r}: {error.name}", err=True)
            is_warned = True


TOOL = Tool(
    "This tool helps to read data from Kafka topics and outputs it to standard output.",
    (
        *flags("enable-systest-events from-beginning skip-message-on-error"),
        *values(
            "bootstrap-server=HOST:PORT consumer-property=NAME=VALUE consumer.config=FILE "
            "formatter=CLASS formatter-config=FILE group=GROUP include=REGEX isolation-level=LEVEL "
            "key-deserializer=CLASS max-messages=N offset=OFFSET partition=N property=NAME=VALUE "
            "timeout-ms=MS topic=TOPIC value-deserializer=CLASS"
        ),
    ),
    explain,
    run,
    {
        "zookeeper": ZOOKEEPER,
        "broker-list": BROKER_LIST,
        "new-consumer": NEW_CONSUMER,
        "blacklist": Retired(
            "Kafka removed it with the old consumer; a pattern like (?!NAME$).* leaves out a topic",
            "",
        ),
        "delete-consumer-offsets": Retired(
            "offsets are no longer kept in ZooKeeper; kafka-consumer-groups.sh --delete-offsets "
            "deletes them",
            "",
            False,
        ),
        "csv-reporter-enabled": Retired("Kafka removed it with the old consumer", "", False),
    },
    {"whitelist": "include"},
)
