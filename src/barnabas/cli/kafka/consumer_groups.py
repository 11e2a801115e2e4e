"""Implements `kafka-consumer-groups.sh`, which lists, describes and deletes groups. Resets are in
`group_reset`.

As in Kafka, a missing group or a rejected change is reported on standard output, with exit code 0.
The tables for a reset and for deleted offsets differ from 3.9.1, which prints all their rows on one
line.
"""

from __future__ import annotations

import click

from barnabas.cli.groups.lookup import look_up, partition_numbers
from barnabas.cli.groups.names import GroupNames
from barnabas.cli.groups.reset_plan import BadReset, select_partitions, selection
from barnabas.cli.groups.rows import DescribedGroup
from barnabas.cli.groups.text import offsets_text, remark, state_text
from barnabas.cli.kafka.group_reset import TARGETS, explain_reset, print_error, run_reset
from barnabas.cli.kafka.group_tables import (
    deleted_offsets_text,
    list_text,
    members_text,
    without_unread,
)
from barnabas.cli.kafka.java_errors import java_message, java_text
from barnabas.cli.kafka.options import BadCommandLine, Given, Option, flags, values
from barnabas.cli.kafka.tool import (
    BROKER_LIST,
    NEW_CONSUMER,
    ZOOKEEPER,
    Line,
    Tool,
    at_servers,
    client_configs,
    flag_words,
    option_words,
    servers,
)
from barnabas.cli.main import EXIT_OK
from barnabas.cli.options import run_client
from barnabas.cli.terminal import for_terminal
from barnabas.client.admin.admin import Admin
from barnabas.client.errors import NoBrokersAvailable
from barnabas.client.lag.readings import DEAD
from barnabas.errors import BarnabasError, GroupIdNotFound, GroupSubscribedToTopic, KafkaError
from barnabas.types import TopicPartition

_ACTIONS = ("list", "describe", "reset-offsets", "delete", "delete-offsets")
_STATES = ("PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty")
_TYPES = ("Classic", "Consumer")


def _check(given: Given) -> str:
    """Return the action. Raises BadCommandLine if it cannot be combined with another option."""
    action = given.one_of(
        *_ACTIONS,
        complaint="Command must include exactly one action: --list, --describe, --delete, "
        "--reset-offsets, --delete-offsets.",
    )
    servers(given)
    if action == "describe":
        given.one_of("group", "all-groups")
        if len([name for name in ("members", "offsets", "state") if name in given]) > 1:
            raise BadCommandLine(
                "Option [describe] takes at most one of these options: [members], [offsets], "
                "[state]"
            )
        # With a value, --state filters a list. Without a value, it selects the table to describe.
        if given.text("state") is not None:
            raise BadCommandLine(
                "Option [describe] does not take a value for [state]: leave it out"
            )
        _only(given, action, "topic", "all-topics")
    elif action == "delete":
        given.one_of("group", "all-groups")
        # For Kafka's old consumer, --topic deleted one topic's offsets, which is no longer
        # supported.
        if "topic" in given:
            raise BadCommandLine(
                "The consumer does not support topic-specific offset deletion from a consumer "
                "group: --delete-offsets does"
            )
    elif action == "delete-offsets":
        given.need("group", "topic")
    elif action == "reset-offsets":
        given.one_of("group", "all-groups")
    for name in ("members", "offsets", "verbose"):
        given.only_with(name, "describe")
    # Reject options of another action instead of ignoring them. For example, --execute must not
    # seem to have an effect.
    given.only_with("state", "describe", "list")
    given.only_with("type", "list")
    for name in (*TARGETS, "execute", "dry-run", "export", "all-topics"):
        given.only_with(name, "reset-offsets")
    return action


def _only(given: Given, action: str, *names: str) -> None:
    for name in names:
        if name in given:
            raise BadCommandLine(f'Option "[{name}]" can\'t be used with option "[{action}]"')


def _names(given: Given) -> GroupNames:
    return GroupNames(tuple(given.texts("group")), "all-groups" in given)


def _filter(given: Given, option: str, known: tuple[str, ...]) -> list[str]:
    """Return the names in an option's value, in Kafka's spelling. Raises BadCommandLine."""
    text = given.text(option)
    if text is None:
        return []
    spelling = {name.lower(): name for name in known}
    found = []
    for word in text.split(","):
        if word.strip().lower() not in spelling:
            raise BadCommandLine(
                f"Invalid {option} list '{text}'. Valid {option}s are: {', '.join(known)}"
            )
        found.append(spelling[word.strip().lower()])
    return found


def explain(given: Given) -> list[Line]:
    """Return the equivalent `barnabas` command."""
    action = _check(given)
    at = at_servers(given)
    groups = [*given.texts("group"), *flag_words(given, "all-groups")]
    if action == "reset-offsets":
        return [["groups", "reset-offsets", *groups, *explain_reset(given), *at]]
    if action == "describe":
        options = flag_words(given, "members", "verbose", "offsets", "state")
        return [["groups", "describe", *groups, *options, *at]]
    if action == "list":
        line = ["groups", "list"]
        for name in ("state", "type"):
            line += option_words(given, name) or flag_words(given, name)
        return [[*line, *at]]
    if action == "delete":
        return [["groups", "delete", *groups, *at]]
    return [["groups", "delete-offsets", *groups, *option_words(given, "topic"), *at]]


def run(given: Given) -> int:
    """Execute the action, and print Kafka's tables."""
    action = _check(given)
    work = {
        "list": _list,
        "describe": _describe,
        "delete": _delete,
        "delete-offsets": _delete_offsets,
    }
    try:
        if action == "reset-offsets":
            run_reset(given, _names(given), _options(given))
        else:
            run_client(work[action](given))
    # An invalid command line, or an address without a broker, is reported on one line, with exit
    # code 1.
    except (BadCommandLine, NoBrokersAvailable):
        raise
    except BarnabasError as error:
        print_error(f"Executing consumer group command failed due to {java_text(error)}")
    return EXIT_OK


def _options(given: Given) -> dict[str, object]:
    timeout_ms = given.number("timeout", 0, 2**63 - 1)
    # Kafka's --timeout applies to each of the tool's requests. The default is 5000 ms.
    own = {} if timeout_ms is None else {"default_api_timeout_ms": timeout_ms}
    return {**client_configs(given), **own}


def _admin(given: Given) -> Admin:
    return Admin(servers(given), **_options(given))  # type: ignore[arg-type]


async def _list(given: Given) -> None:
    states, types = _filter(given, "state", _STATES), _filter(given, "type", _TYPES)
    async with _admin(given) as admin:
        found = await admin.list_groups(states=states, types=types)
    text = list_text(found, with_type="type" in given, with_state="state" in given)
    click.echo(for_terminal(text), nl=False)


async def _describe(given: Given) -> None:
    # Look up committed offsets and log ends only for the table that shows them.
    with_offsets = "members" not in given and "state" not in given
    async with _admin(given) as admin:
        found = await admin.describe_groups(await _names(given).of(admin))
        # Kafka prints the groups in hash-table order. Sort them by name, so that two runs can be
        # compared.
        groups = [found[name] for name in sorted(found)]
        if with_offsets:
            described = await look_up(admin, groups)
        else:
            described = [DescribedGroup(group, {}, []) for group in groups]
    for each in described:
        if each.group.state == DEAD:
            print_error(f"Consumer group '{each.group.group_id}' does not exist.")
            if "members" in given:  # 3.9 prints the heading in any case
                click.echo(
                    for_terminal(members_text(each.group, verbose="verbose" in given)), nl=False
                )
            continue
        # Print the remark before the table, on another stream, so that the table can be piped.
        text = remark(each)
        if text is not None:
            click.echo(f"\n{text}", err=True)
        if "members" in given:
            text = members_text(each.group, verbose="verbose" in given)
        elif "state" in given:
            text = state_text(each)
        else:
            text = offsets_text(without_unread(each))
        click.echo(for_terminal(text), nl=False)


async def _delete(given: Given) -> None:
    deleted: list[str] = []
    failed: dict[str, KafkaError] = {}
    async with _admin(given) as admin:
        # Send one request per group, because an error for one group must not hide the outcome for
        # the others.
        for name in await _names(given).of(admin):
            try:
                await admin.delete_groups([name])
                deleted.append(name)
            except KafkaError as error:
                failed[name] = error
    done = ", ".join(deleted)
    if not failed:
        click.echo(f"Deletion of requested consumer groups ('{done}') was successful.")
        return
    print_error("Deletion of some consumer groups failed:")
    for name, refusal in failed.items():
        reason = f"java.util.concurrent.ExecutionException: {java_text(refusal)}"
        click.echo(f"* Group '{name}' could not be deleted due to: {reason}")
    if deleted:
        click.echo(f"\nThese consumer groups were deleted successfully: '{done}'")


async def _delete_offsets(given: Given) -> None:
    # Kafka's tool accepts only one group. "" is the group with an empty name, which may have
    # offsets.
    (name,) = dict.fromkeys(given.texts("group")) if given.text("group") else ("",)
    try:
        selections = [selection(text) for text in given.texts("topic")]
    except BadReset as error:
        raise BadCommandLine(str(error)) from error
    outcomes: dict[TopicPartition, KafkaError | None] = {}
    async with _admin(given) as admin:
        existing = await partition_numbers(admin)
        known: dict[str, list[int]] = {}
        # Offsets may outlive their topic, so include partitions with commits.
        for topic, number in await admin.list_group_offsets(name):
            known.setdefault(topic, []).append(number)
        partitions = select_partitions(selections, known | existing)
        try:
            await admin.delete_group_offsets(name, partitions)
            outcomes = dict.fromkeys(partitions)
        # Kafka reports this error for each partition, in the table below the first line.
        except GroupSubscribedToTopic as error:
            outcomes = dict.fromkeys(partitions, error)
        # Kafka prints an error that concerns the whole group, and shows every partition as failed.
        except KafkaError as error:
            missing = isinstance(error, GroupIdNotFound)
            print_error(f"'{name}' does not exist." if missing else java_message(error))
            outcomes = dict.fromkeys(partitions, error)
    if not any(outcomes.values()):
        topics = ", ".join(given.texts("topic"))
        click.echo(f"Request succeed for deleting offsets with topic {topics} group {name}")
    elif all(isinstance(each, GroupSubscribedToTopic) for each in outcomes.values()):
        print_error("Encounter some partition level error, see the follow-up details:")
    click.echo(deleted_offsets_text(outcomes), nl=False)


TOOL = Tool(
    "This tool helps to list all consumer groups, describe a consumer group, delete consumer group "
    "info, or reset consumer group offsets.",
    (
        *flags(
            "all-groups all-topics delete delete-offsets describe dry-run execute export list "
            "members offsets reset-offsets to-current to-earliest to-latest verbose"
        ),
        *values(
            "bootstrap-server=HOST:PORT by-duration=DURATION command-config=FILE group=GROUP "
            "shift-by=N timeout=MS to-datetime=INSTANT to-offset=OFFSET topic=TOPIC[:N,N]"
        ),
        Option("from-file", "FILE", is_value_optional=True),
        Option("state", "STATE,...", is_value_optional=True),
        Option("type", "TYPE,...", is_value_optional=True),
    ),
    explain,
    run,
    {"zookeeper": ZOOKEEPER, "broker-list": BROKER_LIST, "new-consumer": NEW_CONSUMER},
)
