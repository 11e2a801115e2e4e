"""`barnabas configs`: like `kafka-configs.sh`, for topics, brokers and users."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import click

from barnabas.cli.complaint import warn
from barnabas.cli.completion import topic_names
from barnabas.cli.configs.changes import BadChange, operations
from barnabas.cli.configs.text import (
    KINDS,
    describe_configs_text,
    describe_configs_values,
    explain_text,
    shown_entries,
)
from barnabas.cli.connection import bootstrap_server, client_options
from barnabas.cli.options import as_json, run_client
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.configs import (
    BROKER,
    BROKER_LOGGER,
    TOPIC,
    ConfigEntry,
    ConfigOperation,
    ConfigOperationType,
    ConfigResource,
)
from barnabas.config import inert_warning, topic_warnings
from barnabas.errors import ConfigError

F = TypeVar("F", bound=Callable[..., Any])

_LISTS = "KEY=VALUE[,...]"


def _whose(command: F) -> F:
    """The options that name a topic, a broker, all brokers or a user."""
    topic = click.option(
        "--topic", metavar="NAME", shell_complete=topic_names, help="The configs of this topic."
    )
    broker = click.option(
        "--broker", type=click.IntRange(0), metavar="ID", help="The configs of this broker."
    )
    defaults = click.option(
        "--broker-defaults",
        is_flag=True,
        help="The defaults for brokers without a value of their own.",
    )
    loggers = click.option(
        "--broker-loggers",
        type=click.IntRange(0),
        metavar="ID",
        help="The log levels of this broker, until it stops.",
    )
    user = click.option(
        "--user", metavar="NAME", help="The SCRAM credentials of this user, which are no secrets."
    )
    return topic(broker(defaults(loggers(user(command)))))


@click.group()
def configs() -> None:
    """Show and change the configs of topics and brokers while they run.

    \b
    Examples:
      barnabas configs describe --topic test
      barnabas configs alter --topic test --add retention.ms=86400000
      barnabas configs alter --broker-defaults --add log.cleaner.threads=2
      barnabas configs describe --explain min.insync.replicas
    """


@configs.command()
@_whose
@click.option(
    "--all", "everything", is_flag=True, help="Include the configs that were not set for it."
)
@click.option("--explain", metavar="KEY", help="Explain a config; needs no broker.")
@as_json
@bootstrap_server
def describe(  # noqa: PLR0913  (a command's parameters are its options)
    topic: str | None,
    broker: int | None,
    broker_defaults: bool,
    broker_loggers: int | None,
    user: str | None,
    everything: bool,
    explain: str | None,
    as_json: bool,
    servers: str,
) -> None:
    """Show the configs that were set for a topic, a broker or all brokers.

    With --all it shows every config and the source of its value. On a terminal the output is a
    table; in a pipe or a file it is the lines that Kafka prints.

    \b
    Examples:
      barnabas configs describe --topic test
      barnabas configs describe --broker 0 --all
      barnabas configs describe --broker-loggers 0
      barnabas configs describe --topic test --all --json
      barnabas configs describe --explain min.insync.replicas
    """
    if explain is not None:
        click.echo(explain_text(explain), nl=False)
        return
    if user is not None:
        _refuse_others(topic, broker, broker_defaults, broker_loggers)
        _describe_user(user, servers, as_json=as_json)
        return
    resource = _resource(topic, broker, broker_defaults, broker_loggers)

    async def work() -> list[ConfigEntry]:
        async with Admin(servers, **client_options()) as admin:
            return await admin.describe_configs(
                resource, include_synonyms=True, include_documentation=True
            )

    entries = shown_entries(resource, run_client(work()), everything)
    if as_json:
        click.echo(json.dumps(describe_configs_values(entries), indent=2))
    elif sys.stdout.isatty():
        from barnabas.cli.tables import show_configs

        show_configs(resource, entries, everything)
    else:
        click.echo(describe_configs_text(resource, entries, everything), nl=False)


@configs.command()
@_whose
@click.option("--add", "--add-config", "add", multiple=True, metavar=_LISTS, help="Set these.")
@click.option(
    "--delete",
    "--delete-config",
    "delete",
    multiple=True,
    metavar="KEY[,...]",
    help="Back to the default.",
)
@click.option("--append", multiple=True, metavar=_LISTS, help="Append items to a list.")
@click.option("--subtract", multiple=True, metavar=_LISTS, help="Remove items from a list.")
@click.option("--validate-only", is_flag=True, help="Check the change without making it.")
@bootstrap_server
def alter(  # noqa: PLR0913  (a command's parameters are its options)
    topic: str | None,
    broker: int | None,
    broker_defaults: bool,
    broker_loggers: int | None,
    user: str | None,
    add: tuple[str, ...],
    delete: tuple[str, ...],
    append: tuple[str, ...],
    subtract: tuple[str, ...],
    validate_only: bool,
    servers: str,
) -> None:
    """Change configs of a topic, a broker or all brokers, all or nothing.

    A value that contains commas goes in square brackets. Changes take effect at once.

    \b
    Examples:
      barnabas configs alter --topic test --add retention.ms=1000,segment.bytes=1048576
      barnabas configs alter --topic test --add cleanup.policy=[compact,delete]
      barnabas configs alter --topic test --append cleanup.policy=compact
      barnabas configs alter --topic test --delete retention.ms
      barnabas configs alter --broker 0 --add log.cleaner.threads=2
      barnabas configs alter --broker-loggers 0 --add barnabas.broker=DEBUG
      barnabas configs alter --user alice --add 'SCRAM-SHA-512=[password=secret]'
    """
    if user is not None:
        _refuse_others(topic, broker, broker_defaults, broker_loggers)
        if append or subtract or validate_only:
            raise click.UsageError("--user: credentials are set by --add and taken by --delete")
        _alter_user(user, add, delete, servers)
        return
    resource = _resource(topic, broker, broker_defaults, broker_loggers)
    try:
        changes = operations(add, delete, append, subtract)
    except BadChange as error:
        raise click.UsageError(str(error)) from error
    if not changes:
        raise click.UsageError("say what to change: --add, --delete, --append or --subtract")

    async def work() -> None:
        async with Admin(servers, **client_options()) as admin:
            await admin.alter_configs(resource, changes, validate_only=validate_only)

    run_client(work())
    if validate_only:
        click.echo("The change is valid; nothing was changed.")
    elif resource.name:
        kind = KINDS[resource.type]
        click.echo(f"Completed updating config for {kind} {resource.name}.")
    else:
        click.echo("Completed updating default config for brokers in the cluster.")
    for warning in _warnings(resource, changes):
        warn("barnabas configs alter", warning)


def _refuse_others(*given: object) -> None:
    """Raises UsageError if something else is named than a user."""
    if any(each is not None and each is not False for each in given):
        raise click.UsageError("--user stands alone")


def _describe_user(user: str, servers: str, *, as_json: bool) -> None:
    from barnabas.cli.configs.users import describe_user_text, described_users

    async def work() -> dict[str, dict[str, int]]:
        async with Admin(servers, **client_options()) as admin:
            return await described_users(admin, [user])

    found = run_client(work())
    if as_json:
        click.echo(json.dumps(found, indent=2))
    elif user in found:
        click.echo(describe_user_text(user, found[user]))


def _alter_user(user: str, add: Iterable[str], delete: Iterable[str], servers: str) -> None:
    from barnabas.cli.configs.users import scram_alterations

    try:
        changes = scram_alterations(user, add, delete)
    except BadChange as error:
        raise click.UsageError(str(error)) from error
    if not changes:
        raise click.UsageError("say what to change: --add or --delete")

    async def work() -> None:
        async with Admin(servers, **client_options()) as admin:
            await admin.alter_user_scram_credentials(changes)

    run_client(work())
    click.echo(f"Completed updating config for user {user}.")


def _resource(
    topic: str | None, broker: int | None, broker_defaults: bool, broker_loggers: int | None
) -> ConfigResource:
    """The resource whose configs are meant. Raises UsageError."""
    given = [each for each in (topic, broker, broker_loggers) if each is not None]
    if len(given) + broker_defaults != 1:
        raise click.UsageError(
            "choose one of --topic, --broker, --broker-defaults, --broker-loggers and --user"
        )
    if broker_loggers is not None:
        return ConfigResource(BROKER_LOGGER, str(broker_loggers))
    if topic is not None:
        if not topic:
            raise click.UsageError("--topic needs a name")
        return ConfigResource(TOPIC, topic)
    return ConfigResource(BROKER, "" if broker is None else str(broker))


def _warnings(resource: ConfigResource, changes: Iterable[ConfigOperation]) -> list[str]:
    """Configs set here that have no effect; in a real Kafka cluster some of them may."""
    values = {
        change.name: change.value or ""
        for change in changes
        if change.op is not ConfigOperationType.DELETE
    }
    if resource.type == TOPIC:
        return topic_warnings(values)
    if resource.type == BROKER_LOGGER:
        return []
    found = []
    for name in values:
        try:
            warning = inert_warning(name)
        except ConfigError:
            continue  # accepted by a broker that knows more configs than we do
        if warning is not None:
            found.append(warning)
    return found
