"""Implements `barnabas configs`, which works like `kafka-configs.sh` for topics, brokers and client
quotas."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence

import click

from barnabas.cli.complaint import warn
from barnabas.cli.configs.changes import BadChange, operations
from barnabas.cli.configs.entity_options import EntityOptions, entity_options
from barnabas.cli.configs.text import (
    KINDS,
    describe_configs_text,
    describe_configs_values,
    explain_text,
    shown_entries,
)
from barnabas.cli.connection import bootstrap_server, client_options
from barnabas.cli.group import command_group
from barnabas.cli.options import as_json, run_client
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.configs import (
    BROKER_LOGGER,
    TOPIC,
    ConfigEntry,
    ConfigOperation,
    ConfigOperationType,
    ConfigResource,
)
from barnabas.config import TOPIC_KEYS, inert_warning, key_of, topic_warnings
from barnabas.config.key import unknown_key
from barnabas.errors import ConfigError

_LISTS = "KEY=VALUE[,...]"


@command_group()
def configs() -> None:
    """Show and change the configs of topics and brokers, and the quotas of clients.

    \b
    Examples:
      barnabas configs describe --topic test
      barnabas configs alter --topic test --add retention.ms=86400000
      barnabas configs alter --broker-defaults --add log.cleaner.threads=2
      barnabas configs describe --explain min.insync.replicas
    """


@configs.command()
@entity_options
@click.option(
    "--all", "everything", is_flag=True, help="Also show configs that have their default values."
)
@click.option("--quotas", is_flag=True, help="All client quotas.")
@click.option(
    "--explain",
    metavar="KEY",
    help="Explain a config, or list the configs whose names start with KEY; needs no broker.",
)
@as_json
@bootstrap_server
def describe(
    chosen: EntityOptions,
    quotas: bool,
    everything: bool,
    explain: str | None,
    as_json: bool,
    servers: str,
) -> None:
    """Show the configs set for a topic, a broker, all brokers, or clients.

    With --all, it shows all configs and the source of each value. On a terminal, the output is a
    table; in a pipe or a file, it consists of the lines that Kafka prints.

    \b
    Examples:
      barnabas configs describe --topic test
      barnabas configs describe --broker 0 --all
      barnabas configs describe --broker-loggers 0
      barnabas configs describe --topic test --all --json
      barnabas configs describe --quotas
      barnabas configs describe --explain min.insync.replicas
    """
    if explain is not None:
        click.echo(explain_text(explain), nl=False)
        return
    entity = chosen.entity()
    if entity or quotas:
        if entity and quotas:
            raise click.UsageError("--quotas shows the quotas of all owners: leave out the name")
        _describe_clients(entity, servers, as_json=as_json)
        return
    resource = chosen.resource()

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
@entity_options
@click.option(
    "--add", "--add-config", "add", multiple=True, metavar=_LISTS, help="Set these configs."
)
@click.option(
    "--delete",
    "--delete-config",
    "delete",
    multiple=True,
    metavar="KEY[,...]",
    help="Reset these configs to their defaults.",
)
@click.option("--append", multiple=True, metavar=_LISTS, help="Append items to a list.")
@click.option("--subtract", multiple=True, metavar=_LISTS, help="Remove items from a list.")
@click.option("--validate-only", is_flag=True, help="Check the change without making it.")
@bootstrap_server
def alter(  # noqa: PLR0913  (a command's parameters are its options)
    chosen: EntityOptions,
    add: tuple[str, ...],
    delete: tuple[str, ...],
    append: tuple[str, ...],
    subtract: tuple[str, ...],
    validate_only: bool,
    servers: str,
) -> None:
    """Change the configs of a topic, a broker, all brokers or clients (all changes or none).

    Put a value that contains commas in square brackets. Changes take effect immediately. Quotas
    take precedence in this order: user with client id, user, client id, default.

    \b
    Examples:
      barnabas configs alter --topic test --add retention.ms=1000,segment.bytes=1048576
      barnabas configs alter --topic test --add cleanup.policy=[compact,delete]
      barnabas configs alter --topic test --append cleanup.policy=compact
      barnabas configs alter --topic test --delete retention.ms
      barnabas configs alter --broker 0 --add log.cleaner.threads=2
      barnabas configs alter --broker-loggers 0 --add barnabas.broker=DEBUG
      barnabas configs alter --user alice --add producer_byte_rate=1048576
      barnabas configs alter --user-defaults --client web --add request_percentage=50
      barnabas configs alter --ip 10.0.0.1 --add connection_creation_rate=10
      barnabas configs alter --user alice --add 'SCRAM-SHA-512=[password=secret]'
    """
    entity = chosen.entity()
    if entity:
        # The quota and credential APIs can only set and remove values.
        if append or subtract or validate_only:
            raise click.UsageError(
                "quotas and credentials can only be changed with --add and --delete, which "
                "take effect immediately"
            )
        _alter_clients(entity, add, delete, servers)
        return
    resource = chosen.resource()
    try:
        changes = operations(add, delete, append, subtract)
    except BadChange as error:
        raise click.UsageError(str(error)) from error
    if not changes:
        raise click.UsageError("nothing to change: use --add, --delete, --append or --subtract")

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
    # The brokers have accepted the change, but it may have no effect.
    for warning in _warnings(resource, changes):
        warn("barnabas configs alter", warning)


def _describe_clients(entity: Mapping[str, str | None], servers: str, *, as_json: bool) -> None:
    from barnabas.cli.configs.clients import Described, describe_entity
    from barnabas.cli.configs.quotas import quota_line, quota_values
    from barnabas.cli.configs.users import describe_user_text

    async def work() -> Described:
        async with Admin(servers, **client_options()) as admin:
            if entity:
                return await describe_entity(admin, entity)
            return Described(await admin.describe_client_quotas(), {})

    found = run_client(work())
    if as_json:
        values = {"quotas": quota_values(found.quotas), "credentials": found.iterations}
        click.echo(json.dumps(values, indent=2))
        return
    for each, quotas in found.quotas.items():
        click.echo(quota_line(each, quotas))
    for user, iterations in found.iterations.items():
        click.echo(describe_user_text(user, iterations))


def _alter_clients(
    entity: Mapping[str, str | None], add: Iterable[str], delete: Iterable[str], servers: str
) -> None:
    from barnabas.cli.configs.clients import apply, change_of, entity_words

    try:
        change = change_of(entity, add, delete)
    except BadChange as error:
        raise click.UsageError(str(error)) from error
    if not change.quotas and not change.credentials:
        raise click.UsageError("nothing to change: use --add or --delete")

    async def work() -> None:
        async with Admin(servers, **client_options()) as admin:
            await apply(admin, change)

    try:
        run_client(work())
    except BadChange as error:
        raise click.UsageError(str(error)) from error
    click.echo(f"Completed updating {entity_words(entity)}.")


def _warnings(resource: ConfigResource, changes: Sequence[ConfigOperation]) -> list[str]:
    """Return warnings about new values that have no effect, and about deleted configs with unknown
    names. Brokers accept both, because such a config may have an effect in a Kafka cluster.
    """
    deleted = [change.name for change in changes if change.op is ConfigOperationType.DELETE]
    values = {
        change.name: change.value or ""
        for change in changes
        if change.op is not ConfigOperationType.DELETE
    }
    if resource.type == TOPIC:
        unknown = [name for name in deleted if name not in TOPIC_KEYS]
        return [
            *topic_warnings(values),
            *(str(unknown_key(name, TOPIC_KEYS, "topic")) for name in unknown),
        ]
    if resource.type == BROKER_LOGGER:
        return []
    found = []
    for name in deleted:
        try:
            key_of(name)
        except ConfigError as error:
            found.append(str(error))
    for name in values:
        try:
            warning = inert_warning(name)
        except ConfigError:
            continue  # the broker accepted it, so it has more configs than this client
        if warning is not None:
            found.append(warning)
    return found
