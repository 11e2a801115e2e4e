"""Implements `kafka-configs.sh` for quotas and credentials."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

import click

from barnabas.cli.configs.changes import BadChange
from barnabas.cli.configs.clients import Change, apply, change_of, describe_entity, entity_words
from barnabas.cli.configs.quotas import quota_line
from barnabas.cli.configs.users import describe_user_text
from barnabas.cli.kafka.options import BadCommandLine, Given
from barnabas.cli.kafka.tool import Line, NotCovered, admin_of, at_servers
from barnabas.cli.kafka.tool import option_words as repeated

_TYPES: Final = {"users": "user", "clients": "client-id", "ips": "ip"}
_SHORT: Final = {"client": "clients", "user": "users", "ip": "ips"}  # in Kafka's order
_OWN: Final = {"user": "user", "client-id": "client", "ip": "ip"}
"""Maps entity types to options of our command."""


class LineEntity(NamedTuple):
    """Describes the owner of the quotas or credentials on a command line."""

    entity: dict[str, str | None]
    types: list[str]
    """The types for which any name matches."""


def is_about_clients(given: Given) -> bool:
    """Return whether a command line is about users, client ids or addresses."""
    short = [*_SHORT, *(f"{name}-defaults" for name in _SHORT)]
    return not _TYPES.keys().isdisjoint(given.texts("entity-type")) or any(
        name in given for name in short
    )


def explain(given: Given, action: str) -> list[Line]:
    """Return the equivalent `barnabas` command."""
    entity, types = entity_of_line(given)
    # A type without a name stands for all entities of the type. Our command lists these only with
    # --quotas.
    if types:
        if action == "describe" and not entity:
            return [["configs", "describe", "--quotas", *at_servers(given)]]
        raise NotCovered("our command shows one owner at a time, or all quotas: add a name")
    if action == "alter":
        _change(given, entity)
    options = repeated(given, "add-config", "add") + repeated(given, "delete-config", "delete")
    words: Line = []
    for kind, name in entity.items():
        words += [f"--{_OWN[kind]}-defaults"] if name is None else [f"--{_OWN[kind]}", name]
    return [["configs", action, *words, *options, *at_servers(given)]]


async def describe(given: Given) -> None:
    """Print quotas and credentials as Kafka does."""
    entity, types = entity_of_line(given)
    async with admin_of(given) as admin:
        # Quotas come before credentials, because Kafka requests and prints them in this order.
        quotas, users = await describe_entity(admin, entity, types)
    for each, values in quotas.items():
        click.echo(quota_line(each, values))
    for user, iterations in users.items():
        click.echo(describe_user_text(user, iterations))


async def alter(given: Given) -> None:
    """Change quotas or credentials, and print what Kafka prints."""
    await change(given)
    click.echo(f"Completed updating {entity_words(entity_of_line(given).entity)}.")


async def change(given: Given) -> None:
    """Change quotas or credentials. Raises BadCommandLine."""
    entity, types = entity_of_line(given)
    if not entity:
        raise BadCommandLine(
            "an entity-name or default entity must be specified with --alter of users, clients, "
            "brokers or ips"
        )
    if types:
        raise BadCommandLine("An entity name must be specified for every entity type")
    wanted = _change(given, entity)
    async with admin_of(given) as admin:
        try:
            await apply(admin, wanted)
        except BadChange as error:
            raise BadCommandLine(str(error)) from error


def _change(given: Given, entity: dict[str, str | None]) -> Change:
    if "add-config-file" in given:
        raise NotCovered("--add-config-file: give quotas and credentials with --add-config")
    try:
        return change_of(entity, given.texts("add-config"), given.texts("delete-config"))
    except BadChange as error:
        raise BadCommandLine(str(error)) from error


def entity_of_line(given: Given) -> LineEntity:
    """Return the names by type. One of the types may lack a name. Raises BadCommandLine."""
    types = given.texts("entity-type")
    short = [name for name in _SHORT if name in given]
    defaults = [name for name in _SHORT if f"{name}-defaults" in given]
    if types and (short or defaults):
        raise BadCommandLine(
            "--entity-{type,name,default} should not be used in conjunction with specific entity "
            "flags"
        )
    # Names and types are paired in order, so the first name belongs to the first type.
    names: list[str | None] = list(given.in_order("entity-name", "entity-default"))
    # Kafka always processes --user, --client and --ip in this order, with names before defaults.
    types += [_SHORT[name] for name in (*short, *defaults)]
    names += [given.text(name) for name in short] + [None] * len(defaults)
    _check_types(types)
    if len(names) > len(types):
        raise BadCommandLine("More entity names specified than entity types")
    kinds = [_TYPES[each] for each in types]
    entity = dict(zip(kinds, names, strict=False))
    if "" in entity.values():
        raise BadCommandLine("--entity-name needs a name; use --entity-default for the default")
    return LineEntity(entity, kinds[len(names) :])


def _check_types(types: Iterable[str]) -> None:
    types = list(types)
    twice = [each for each in dict.fromkeys(types) if types.count(each) > 1]
    if twice:
        raise BadCommandLine(f"Duplicate entity type(s) specified: {','.join(twice)}")
    # Quotas can apply to only one kind of pair, a user and a client id.
    if len(types) > 1 and set(types) != {"users", "clients"}:
        raise BadCommandLine("Only 'users' and 'clients' entity types may be specified together")
