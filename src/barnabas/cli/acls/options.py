"""Defines the options of `barnabas acls` that specify resources, clients and operations."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from itertools import product
from typing import Any, TypeVar

import click

from barnabas.cli.acls.grants import CLUSTER, BadGrant, Deeds, check_deeds, operations_by_pattern
from barnabas.cli.completion import topic_names
from barnabas.security.acl import Operation, ResourceType
from barnabas.security.acl_binding import (
    AclFilter,
    Pattern,
    PatternType,
    PermissionType,
    parse_code,
    parse_principal,
)
from barnabas.security.acl_host import java_host

F = TypeVar("F", bound=Callable[..., Any])

_TYPES = {
    "topics": ResourceType.TOPIC,
    "groups": ResourceType.GROUP,
    "transactional_ids": ResourceType.TRANSACTIONAL_ID,
    "delegation_tokens": ResourceType.DELEGATION_TOKEN,
    "user_principals": ResourceType.USER,
}


def resources(pattern_types: tuple[str, ...], default: str) -> Callable[[F], F]:
    """Add the options for resources. The command receives their values as `patterns`.

    `pattern_types` lists the permitted ways to match names.
    """
    options = (
        click.option(
            "--topic",
            "topics",
            multiple=True,
            metavar="NAME",
            shell_complete=topic_names,
            help="A topic, or '*' for every topic; may be repeated, like the following options.",
        ),
        click.option("--group", "groups", multiple=True, metavar="NAME", help="A consumer group."),
        click.option("--cluster", is_flag=True, help="The cluster."),
        click.option("--transactional-id", "transactional_ids", multiple=True, metavar="ID"),
        click.option("--delegation-token", "delegation_tokens", multiple=True, metavar="ID"),
        click.option(
            "--user-principal",
            "user_principals",
            multiple=True,
            metavar="TYPE:NAME",
            help="A user for whom tokens are created.",
        ),
        click.option(
            "--resource-pattern-type",
            type=click.Choice(pattern_types, case_sensitive=False),
            default=default,
            show_default=True,
            help="How to match names: exactly, as prefixes, or by all rules that apply to them.",
        ),
    )

    def decorate(command: F) -> F:
        @wraps(command)
        def gather(**given: Any) -> Any:
            pattern_type = parse_code(PatternType, given.pop("resource_pattern_type"))
            patterns = [
                Pattern(resource_type, name, pattern_type)
                for option, resource_type in _TYPES.items()
                for name in given.pop(option)
            ]
            if given.pop("cluster"):
                patterns.append(CLUSTER)
            return command(patterns=patterns, **given)

        chosen: Any = gather
        # Decorators apply from the inside out, so reverse the options to make --help list them in
        # this order.
        for option in reversed(options):
            chosen = option(chosen)
        return chosen  # type: ignore[no-any-return]

    return decorate


def principals(command: F) -> F:
    """Add `--user` and `--principal`. The command receives their values as `principals`."""

    @wraps(command)
    def gather(**given: Any) -> Any:
        named = [f"User:{name}" for name in given.pop("users")]
        for text in given.pop("named_principals"):
            try:
                named.append(str(parse_principal(text)))
            except ValueError as error:
                raise click.UsageError(f"--principal: {error}") from None
        return command(principals=tuple(named), **given)

    chosen: Any = gather
    chosen = click.option(
        "--principal",
        "named_principals",
        multiple=True,
        metavar="TYPE:NAME",
        help="The user with its type, such as User:alice; User:* means everyone.",
    )(chosen)
    return click.option(  # type: ignore[no-any-return]
        "--user",
        "users",
        multiple=True,
        metavar="NAME",
        help="The user to whom the rule applies; may be repeated.",
    )(chosen)


def deeds(command: F) -> F:
    """Add the options for operations. The command receives their values as `deeds`."""
    options = (
        click.option(
            "--producer", is_flag=True, help="All operations needed to write to the topics."
        ),
        click.option(
            "--consumer",
            is_flag=True,
            help="All operations needed to read the topics in the group.",
        ),
        click.option(
            "--idempotent",
            is_flag=True,
            help=("With --producer: also allow idempotent writes, for older brokers."),
        ),
        click.option(
            "--operation",
            "operations",
            multiple=True,
            metavar="NAME",
            callback=_operations,
            help="Such as read, write, describe, alter-configs or all; may be repeated.",
        ),
    )

    @wraps(command)
    def gather(**given: Any) -> Any:
        names = ("producer", "consumer", "idempotent", "operations")
        return command(deeds=Deeds(*[given.pop(name) for name in names]), **given)

    chosen: Any = gather
    for option in reversed(options):
        chosen = option(chosen)
    return chosen  # type: ignore[no-any-return]


hosts = click.option(
    "--host",
    "hosts",
    multiple=True,
    callback=lambda _, __, given: tuple(map(java_host, given)),
    metavar="ADDRESS",
    help="A client address, not a host name or range; '*' means any. May be repeated.",
)


def operation(text: str) -> Operation:
    """Parse `alter-configs`, `AlterConfigs` or `ALTER_CONFIGS`. Raises UsageError."""
    try:
        found = parse_code(Operation, text.replace("-", "_"))
    except ValueError as error:
        raise click.UsageError(f"--operation: {error}") from None
    if found is Operation.ANY:
        raise click.UsageError("--operation any: use all for every operation")
    return found


def _operations(_: click.Context, __: click.Parameter, texts: Iterable[str]) -> tuple[Any, ...]:
    return tuple(map(operation, texts))


def check(deeds: Deeds, patterns: list[Pattern]) -> None:
    """Raise UsageError if options contradict each other."""
    try:
        check_deeds(deeds, patterns)
        operations_by_pattern(deeds, patterns)
    except BadGrant as error:
        raise click.UsageError(str(error)) from None


def filters(
    patterns: list[Pattern],
    deeds: Deeds,
    clients: tuple[tuple[str, ...], tuple[str, ...]],
    permission: PermissionType,
) -> list[AclFilter]:
    """Return filters for the rules that the options select. A missing option matches anything.

    `clients` contains the principals and the hosts.
    """
    principals, hosts = clients
    wanted = operations_by_pattern(deeds, patterns)
    # Without a resource, the operations apply to any resource.
    if not patterns:
        resources = [(AclFilter(), deeds.operations)]
    else:
        resources = [(AclFilter(*pattern), found) for pattern, found in wanted.items()]
    return [
        resource._replace(
            principal=principal, host=host, operation=operation, permission=permission
        )
        for resource, operations in resources
        # A filter has only one value per field, so each combination needs its own filter. None and
        # ANY match anything.
        for principal, host, operation in product(
            principals or (None,), hosts or (None,), operations or (Operation.ANY,)
        )
    ]
