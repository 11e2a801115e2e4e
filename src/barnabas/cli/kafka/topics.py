"""Implements `kafka-topics.sh`, which creates, lists, describes, alters and deletes topics.

Command lines with --zookeeper are handled by `zookeeper_topics`, as in 2.3.1.
"""

from __future__ import annotations

from collections.abc import Sequence

import click

from barnabas.cli.kafka import zookeeper_topics
from barnabas.cli.kafka.java_errors import java_message, java_text
from barnabas.cli.kafka.options import BadCommandLine, Given, flags, values
from barnabas.cli.kafka.tool import (
    BROKER_LIST,
    Line,
    NotCovered,
    Tool,
    admin_of,
    at_servers,
    flag_words,
    option_words,
    patterns,
    plain_names,
    servers,
)
from barnabas.cli.kafka.topic_assignment import assignment_of
from barnabas.cli.kafka.zookeeper_brokers import (
    ZOOKEEPER_OPTION,
    at_brokers,
    is_by_zookeeper,
)
from barnabas.cli.kafka.zookeeper_topics import COLLISION, Refused, create_topic
from barnabas.cli.main import EXIT_FAILURE, EXIT_OK
from barnabas.cli.options import key_values, run_client
from barnabas.cli.topics.describe import (
    NOTHING_MOVES,
    Filters,
    Moving,
    describe_text,
    own_configs,
)
from barnabas.client.admin.admin import (
    TOPIC,
    Admin,
    ConfigEntry,
    ConfigResource,
    TopicDescription,
)
from barnabas.client.errors import Unreachable
from barnabas.errors import (
    BarnabasError,
    ClusterAuthorizationFailed,
    ConfigError,
    UnsupportedVersion,
)
from barnabas.types import uuid_text

_ACTIONS = ("list", "describe", "create", "alter", "delete")
_FILTERS = {
    "under-replicated-partitions": "under_replicated",
    "unavailable-partitions": "unavailable",
    "under-min-isr-partitions": "under_min_isr",
    "at-min-isr-partitions": "at_min_isr",
}
_OVERRIDES = "topics-with-overrides"
_INT16_MAX = 2**15 - 1
Described = list[tuple[TopicDescription, list[ConfigEntry]]]


def _check(given: Given) -> str:
    """Return the action. Raises BadCommandLine if it cannot be combined with another option."""
    action = given.one_of(
        *_ACTIONS,
        complaint="Command must include exactly one action: --list, --describe, --create, --alter "
        "or --delete",
    )
    by_zookeeper = is_by_zookeeper(given)
    if not by_zookeeper:
        servers(given)
    if "describe" in given and "if-exists" in given and "topic" not in given:
        raise BadCommandLine("--topic is required to describe a topic")
    if action not in ("list", "describe"):
        given.need("topic")
    # With brokers, --alter only adds partitions. In 2.3.1, it also changed configs.
    if action == "alter" and not by_zookeeper:
        given.need("partitions")
    for name in ("partitions", "replica-assignment"):
        _only(given, action, name, ("create", "alter"))
    _only(given, action, "config", ("create", "alter") if by_zookeeper else ("create",))
    _only(given, action, "delete-config", ("alter",))
    if not by_zookeeper:
        given.only_with("delete-config", ZOOKEEPER_OPTION)
    _only(given, action, "replication-factor", ("create",))
    _only(given, action, "if-not-exists", ("create",))
    _only(given, action, "if-exists", ("alter", "delete", "describe"))
    _only(given, action, "exclude-internal", ("list", "describe"))
    for name in (*_FILTERS, _OVERRIDES, "topic-id"):
        _only(given, action, name, ("describe",))
    if action == "create":
        given.not_with("replica-assignment", "partitions", "replication-factor")
    for name in _FILTERS:
        given.not_with(name, _OVERRIDES)
    if by_zookeeper:
        zookeeper_topics.check(given, action)
    return action


def _only(given: Given, action: str, name: str, actions: Sequence[str]) -> None:
    if name in given and action not in actions:
        advice = "; `barnabas kafka-configs.sh --alter` changes configs" if name == "config" else ""
        raise BadCommandLine(f'Option "[{name}]" can\'t be used with option "[{action}]"{advice}')


def explain(given: Given) -> list[Line]:
    """Return the equivalent `barnabas` command."""
    action = _check(given)
    given = at_brokers(given)
    at = at_servers(given)
    topic = given.text("topic")
    if action == "create":
        options = [
            *option_words(given, "partitions"),
            *option_words(given, "replication-factor"),
            *option_words(given, "replica-assignment"),
            *option_words(given, "config"),
            *flag_words(given, "if-not-exists"),
        ]
        return [["topics", "create", topic or "", *options, *at]]
    # Our command has no equivalent to a pattern for --list.
    if action == "list" and topic is not None:
        raise NotCovered(
            "--list --topic: our command lists all topics: barnabas topics list | grep NAME"
        )
    if action == "list":
        return [["topics", "list", *flag_words(given, "exclude-internal"), *at]]
    # In Kafka, --topic is a regular expression, whereas our commands accept names.
    names = [] if topic is None else plain_names(topic, "topic")
    if action == "delete":
        return [["topics", "delete", *names, *flag_words(given, "if-exists"), *at]]
    if action == "alter":
        return [line for name in names for line in _alterations(given, name)]
    for name in (_OVERRIDES, "topic-id"):
        if name in given:
            raise NotCovered(f"--{name}: our command has no such filter")
    options = flag_words(given, *_FILTERS, "exclude-internal")
    if not names:
        return [["topics", "describe", *options, *at]]
    return [["topics", "describe", name, *options, *at] for name in names]


def _alterations(given: Given, topic: str) -> list[Line]:
    """Return our commands for altering a topic. There is one for its configs and one for its
    partitions.
    """
    at, lines = at_servers(given), []
    changes = [
        *option_words(given, "config", "add"),
        *option_words(given, "delete-config", "delete"),
    ]
    if changes:
        lines.append(["configs", "alter", "--topic", topic, *changes, *at])
    if "partitions" in given:
        options = [*option_words(given, "partitions"), *option_words(given, "replica-assignment")]
        options += flag_words(given, "if-exists")
        lines.append(["topics", "alter", topic, *options, *at])
    return lines


def run(given: Given) -> int:
    """Execute the action, and print what Kafka prints."""
    action = _check(given)
    work = {"create": _create, "list": _list, "describe": _describe, "alter": _alter}
    try:
        if is_by_zookeeper(given):
            zookeeper_topics.run(given, action)
        else:
            run_client(work.get(action, _delete)(given))
    except BarnabasError as error:
        # The user can correct these errors, so one line says how. Other errors are the brokers'
        # responses, which are printed in Kafka's words.
        if isinstance(error, BadCommandLine | NotCovered | Unreachable | ConfigError):
            raise
        click.echo(f"Error while executing topic command : {java_message(error)}")
        click.echo(f"ERROR {java_text(error)} (org.apache.kafka.tools.TopicCommand)", err=True)
        return EXIT_FAILURE
    return EXIT_OK


async def _create(given: Given) -> None:
    name = given.required_text("topic")
    # Metrics replace '.' with '_', so two such topics could share a name.
    if "." in name or "_" in name:
        click.echo(COLLISION)
    partitions, factor = given.number("partitions"), given.number("replication-factor")
    if partitions is not None and partitions < 1:
        raise Refused("The partitions must be greater than 0")
    # The factor is a signed 16-bit number in the protocol. Kafka checks it before any request.
    if factor is not None and not 1 <= factor <= _INT16_MAX:
        raise Refused(f"The replication factor must be between 1 and {_INT16_MAX} inclusive")
    await create_topic(given, name, key_values(given.texts("config"), "--config"))


async def _list(given: Given) -> None:
    async with admin_of(given) as admin:
        click.echo("\n".join(await _names(admin, given)))


async def _describe(given: Given) -> None:
    async with admin_of(given) as admin:
        found = await _describe_wanted(admin, given)
        if _OVERRIDES in given:
            click.echo("".join(map(_heading, found)), nl=False)
            return
        filters = Filters(**{field: name in given for name, field in _FILTERS.items()})
        click.echo(describe_text(found, filters, await _moving(admin)), nl=False)


async def _describe_wanted(admin: Admin, given: Given) -> Described:
    """Return the described topics with their configs. Raises Refused."""
    wanted = given.text("topic-id")
    if wanted is None:
        names = await _existing(admin, given)
        topics = await admin.describe_topics(names) if names else []
    else:
        # Kafka uses only the id, even if a name is given. Our admin client looks up topics by name,
        # so search all topics for the id.
        topics = [
            each for each in await admin.describe_topics() if uuid_text(each.topic_id) == wanted
        ]
        if not topics and "if-exists" not in given:
            raise Refused(f"TopicId '{wanted}' does not exist as expected")
    if not topics:
        return []
    resources = [ConfigResource(TOPIC, topic.name) for topic in topics]
    configs = await admin.describe_configs(resources)
    return [(topic, configs[ConfigResource(TOPIC, topic.name)]) for topic in topics]


async def _alter(given: Given) -> None:
    count = given.number("partitions", 1)
    assert count is not None
    assignment = assignment_of(given)
    async with admin_of(given) as admin:
        names = await _existing(admin, given)
        for topic in await admin.describe_topics(names) if names else ():
            there = len(topic.partitions)
            added = None
            if assignment is not None:
                # The assignment lists all partitions, but only the new ones are sent.
                added = [assignment[number] for number in sorted(assignment) if number >= there]
            await admin.create_partitions(topic.name, count, added)


async def _delete(given: Given) -> None:
    async with admin_of(given) as admin:
        names = await _existing(admin, given)
        if names:
            await admin.delete_topics(names)


async def _existing(admin: Admin, given: Given) -> list[str]:
    """Return the selected topics. Without --if-exists, raises Refused if there are none."""
    names = await _names(admin, given)
    topic = given.text("topic")
    if topic is not None and not names and "if-exists" not in given:
        raise Refused(f"Topic '{topic}' does not exist as expected")
    return names


async def _names(admin: Admin, given: Given) -> list[str]:
    names = await admin.list_topics(include_internal="exclude-internal" not in given)
    topic = given.text("topic")
    if topic is None:
        return names
    wanted = patterns(topic, "topic")
    return [name for name in names if wanted.fullmatch(name)]


def _heading(described: tuple[TopicDescription, list[ConfigEntry]]) -> str:
    """Return the line for the topic itself, if it has any configs."""
    if not own_configs(described[1]):
        return ""
    return describe_text([described], Filters()).splitlines(keepends=True)[0]


async def _moving(admin: Admin) -> Moving:
    """Return the partitions being reassigned, if a controller responds."""
    try:
        # As in Kafka, if there is no response, no partition is shown as being reassigned.
        return await admin.list_partition_reassignments()
    except (Unreachable, ClusterAuthorizationFailed, UnsupportedVersion):
        return NOTHING_MOVES


TOOL = Tool(
    "Create, delete, describe, or change a topic.",
    (
        *flags(
            "alter at-min-isr-partitions create delete describe exclude-internal if-exists "
            "if-not-exists list topics-with-overrides unavailable-partitions "
            "under-min-isr-partitions under-replicated-partitions force disable-rack-aware"
        ),
        *values(
            "bootstrap-server=HOST:PORT command-config=FILE config=NAME=VALUE partitions=N "
            "partition-size-limit-per-response=N replica-assignment=ID:ID,ID:ID "
            "replication-factor=N topic=TOPIC topic-id=ID zookeeper=HOST:PORT[/CHROOT] "
            "delete-config=NAME"
        ),
    ),
    explain,
    run,
    {"broker-list": BROKER_LIST},
)
