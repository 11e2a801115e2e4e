"""Implements `kafka-configs.sh` for topics, brokers, the brokers' loggers, and client quotas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import click

from barnabas.cli.configs.changes import BadChange, operations
from barnabas.cli.configs.text import KINDS, describe_configs_text, shown_entries
from barnabas.cli.kafka import client_configs, zookeeper_configs
from barnabas.cli.kafka.java_errors import java_text
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
    servers,
)
from barnabas.cli.kafka.zookeeper_brokers import at_brokers, is_by_zookeeper
from barnabas.cli.main import EXIT_FAILURE, EXIT_OK
from barnabas.cli.options import run_client
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.configs import (
    BROKER,
    BROKER_LOGGER,
    TOPIC,
    ConfigOperation,
    ConfigOperationType,
    ConfigResource,
)
from barnabas.config import load_properties
from barnabas.errors import KafkaError

_TYPES: Final = {"topics": TOPIC, "brokers": BROKER, "broker-loggers": BROKER_LOGGER}
_SHORT: Final = {"topic": "topics", "broker": "brokers", "broker-logger": "broker-loggers"}
_MISSING: Final = {
    "client-metrics": "subscriptions to clients' metrics",
    "groups": "configs of groups",
    "group": "configs of groups",
}
"""The parts of Kafka's tool that are unsupported."""


def _resources(given: Given) -> tuple[int, list[str] | None]:
    """Return the type and the names: "" for the brokers' defaults, None for all names.

    Raises BadCommandLine or NotCovered.
    """
    for name in _MISSING.keys() & set(given):
        raise NotCovered(f"--{name}: `barnabas` has no command for {_MISSING[name]}")
    short = [name for name in (*_SHORT, "broker-defaults") if name in given]
    types = given.texts("entity-type")
    if len(types) + len(short) != 1:
        raise BadCommandLine(
            "name one kind of entity: --topic, --broker, --broker-defaults or --entity-type"
        )
    if types and types[0] in _MISSING:
        raise NotCovered(
            f"--entity-type {types[0]}: `barnabas` has no command for {_MISSING[types[0]]}"
        )
    if types and types[0] not in _TYPES:
        raise BadCommandLine(
            f"Invalid entity type {types[0]}, the entity type must be one of {', '.join(_TYPES)}"
        )
    if short == ["broker-defaults"]:
        return BROKER, [""]
    # A short option (KIP-543) specifies both type and name: --topic NAME.
    kind = _TYPES[types[0] if types else _SHORT[short[0]]]
    given.not_with("entity-default", "entity-name", *_SHORT)
    if "entity-default" in given:
        if kind != BROKER:
            raise BadCommandLine(
                "--entity-default: topics and loggers have no defaults of their own"
            )
        return kind, [""]
    names = given.texts("entity-name") or [text for name in short for text in given.texts(name)]
    for name in names:
        # A broker's loggers are also identified by its id.
        if kind != TOPIC and not name.isdecimal():
            raise BadCommandLine(
                f"The entity name for {KINDS[kind]}s must be a valid integer broker id, "
                f"found: {name}"
            )
    return kind, names or None


def _check(given: Given) -> str:
    """Return the action. Raises BadCommandLine."""
    if ("alter" in given) == ("describe" in given):
        raise BadCommandLine("Command must include exactly one action: --describe, --alter")
    if "bootstrap-controller" in given:
        raise NotCovered(
            "--bootstrap-controller: there is no KRaft quorum; use --bootstrap-server instead"
        )
    if not is_by_zookeeper(given):
        servers(given)
    zookeeper_configs.check(given)
    if "describe" in given:
        for name in ("add-config", "add-config-file", "delete-config"):
            given.not_with(name, "describe")
        return "describe"
    given.only_with("all", "describe")
    if not {"add-config", "add-config-file", "delete-config"} & set(given):
        raise BadCommandLine(
            "At least one of --add-config, --add-config-file, or --delete-config must be "
            "specified with --alter"
        )
    given.not_with("add-config", "add-config-file")
    return "alter"


def _changes(given: Given) -> list[ConfigOperation]:
    """Return the changes that the command line describes. Raises BadCommandLine."""
    try:
        changes = operations(given.texts("add-config"), given.texts("delete-config"), (), ())
    except BadChange as error:
        raise BadCommandLine(str(error)) from error
    set_by_file = [
        ConfigOperation(name, ConfigOperationType.SET, value)
        for name, value in _of_file(given).items()
    ]
    return changes + set_by_file


def _of_file(given: Given) -> Mapping[str, str]:
    path = given.text("add-config-file")
    return {} if path is None else load_properties(path)


def explain(given: Given) -> list[Line]:
    """Return the equivalent `barnabas` commands."""
    action = _check(given)
    given = at_brokers(given)
    if client_configs.is_about_clients(given):
        return client_configs.explain(given, action)
    kind, names = _resources(given)
    if names is None:
        raise NotCovered(
            f"our command shows one {KINDS[kind]} at a time: add its name with --entity-name"
        )
    if action == "describe":
        options = flag_words(given, "all")
    else:
        _changes(given)
        options = option_words(given, "add-config", "add") + option_words(
            given, "delete-config", "delete"
        )
        for name, value in _of_file(given).items():
            # In a file, there is one value per line. In an option, values are separated by commas,
            # except within brackets.
            options += ["--add", f"{name}=[{value}]" if "," in value else f"{name}={value}"]
    return [
        ["configs", action, *_entity_option(kind, name), *options, *at_servers(given)]
        for name in names
    ]


def _entity_option(kind: int, name: str) -> Line:
    if not name:
        return ["--broker-defaults"]
    return ["--broker-loggers" if kind == BROKER_LOGGER else f"--{KINDS[kind]}", name]


def run(given: Given) -> int:
    """Describe or alter configs, and print what Kafka prints."""
    action = _check(given)
    try:
        # Without brokers, SCRAM credentials and the settings of stopped brokers are written to
        # ZooKeeper.
        if is_by_zookeeper(given):
            zookeeper_configs.run(given, action, lambda: _named_resource(given))
        elif client_configs.is_about_clients(given):
            of_clients = client_configs.describe if action == "describe" else client_configs.alter
            run_client(of_clients(given))
        else:
            run_client((_describe if action == "describe" else _alter)(given, *_resources(given)))
    except KafkaError as error:
        click.echo(f"Error while executing config command: {java_text(error)}", err=True)
        return EXIT_FAILURE
    return EXIT_OK


def _named_resource(given: Given) -> tuple[str, list[str] | None]:
    """Return the type under its Kafka name, and the names. Raises BadCommandLine or NotCovered."""
    kind, names = _resources(given)
    return next(name for name, each in _TYPES.items() if each == kind), names


async def _describe(given: Given, kind: int, names: list[str] | None) -> None:
    everything = "all" in given
    async with admin_of(given) as admin:
        if names is None:
            names = await _every_name(admin, kind)
        for name in names:
            resource = ConfigResource(kind, name)
            # As in Kafka, send one request per name, because an unknown name must not affect
            # earlier output.
            found = await admin.describe_configs(resource, include_synonyms=True)
            entries = shown_entries(resource, found, everything)
            click.echo(describe_configs_text(resource, entries, everything), nl=False)


async def _every_name(admin: Admin, kind: int) -> list[str]:
    """Return every topic, or every broker followed by the defaults."""
    if kind == TOPIC:
        return await admin.list_topics()
    brokers = sorted(str(each.broker_id) for each in (await admin.describe_cluster()).brokers)
    return [*brokers, ""] if kind == BROKER else brokers


async def _alter(given: Given, kind: int, names: list[str] | None) -> None:
    if names is None:
        raise BadCommandLine("an entity-name or default entity must be specified with --alter")
    changes = _changes(given)
    async with admin_of(given) as admin:
        for name in names:
            resource = ConfigResource(kind, name)
            # Brokers would accept the deletion of a config that is not set, but Kafka's tool does
            # not.
            await _refuse_unset(admin, resource, changes)
            await admin.alter_configs(resource, changes)
            text = f"config for {KINDS[kind]} {name}"
            if not name:
                text = "default config for brokers in the cluster"
            click.echo(f"Completed updating {text}.")


async def _refuse_unset(
    admin: Admin, resource: ConfigResource, changes: list[ConfigOperation]
) -> None:
    """Raise BadCommandLine if a config to be deleted is not set."""
    wanted = {each.name for each in changes if each.op is ConfigOperationType.DELETE}
    if wanted:
        own = shown_entries(resource, await admin.describe_configs(resource), False)
        unset = wanted - {entry.name for entry in own}
        if unset:
            raise BadCommandLine(f"Invalid config(s): {','.join(sorted(unset))}: not set")


TOOL = Tool(
    "This tool helps to manipulate and describe entity config for a topic, client, user, broker, "
    "ip or client-metrics",
    (
        *flags(
            "all alter broker-defaults client-defaults describe entity-default force ip-defaults "
            "user-defaults"
        ),
        *values(
            "add-config=NAME=VALUE,... add-config-file=FILE bootstrap-controller=HOST:PORT "
            "bootstrap-server=HOST:PORT broker=ID broker-logger=ID client=ID client-metrics=NAME "
            "command-config=FILE delete-config=NAME,... entity-name=NAME entity-type=TYPE "
            "group=GROUP ip=IP topic=TOPIC user=USER zookeeper=HOST:PORT[/CHROOT] "
            "zk-tls-config-file=FILE"
        ),
    ),
    explain,
    run,
    {"broker-list": BROKER_LIST},
)
