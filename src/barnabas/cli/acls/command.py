"""`barnabas acls`: like `kafka-acls.sh`; and which rule decides, and why."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from barnabas.cli.acls.wanted import OPERATIONS, Incomplete, Options, bindings, resources_of
from barnabas.cli.connection import bootstrap_server, client_options
from barnabas.cli.counted import counted
from barnabas.cli.main import EXIT_FAILURE, EXIT_OK
from barnabas.cli.options import as_json, run_client
from barnabas.client.admin.admin import Admin
from barnabas.security.acl import Operation, ResourceType
from barnabas.security.acl_binding import (
    AclBinding,
    AclFilter,
    PatternType,
    PermissionType,
    parse_code,
    pascal_name,
)
from barnabas.security.acl_explanation import Explanation, Question, explained, shown

F = TypeVar("F", bound=Callable[..., Any])


class _Operation(click.ParamType):  # type: ignore[type-arg]
    """`read`, `Read`, `describe-configs`, `DescribeConfigs`."""

    name = "operation"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Operation:
        if isinstance(value, Operation):
            return value
        try:
            found = parse_code(Operation, str(value).replace("-", "_"))
        except ValueError as error:
            self.fail(str(error), param, ctx)
        return found


_ANY = (ResourceType.ANY, None, PatternType.ANY)
_PATTERN_TYPES = {each.name.lower(): each for each in PatternType}


def _users(command: F) -> F:
    """Whom rules are about, as `users` and `principals`."""
    user = click.option(
        "--user", "named", multiple=True, metavar="NAME", help="The user; may be repeated."
    )
    principal = click.option(
        "--principal",
        "principals",
        multiple=True,
        metavar="TYPE:NAME",
        help="The same with its type, such as User:CN=broker; User:* stands for all.",
    )
    host = click.option(
        "--host", "hosts", multiple=True, metavar="IP", help="Only from there; may be repeated."
    )
    return user(principal(host(command)))


def _resources(command: F) -> F:
    """What rules are about."""
    for option, argument, text in (
        ("--user-resource", "users", "A user, whose tokens may be asked for."),
        ("--delegation-token", "tokens", "A delegation token."),
        ("--transactional-id", "transactional_ids", "A transactional id."),
        ("--group", "groups", "A consumer group."),
        ("--topic", "topics", "A topic; * stands for all."),
    ):
        command = click.option(
            option, argument, multiple=True, metavar="NAME", help=f"{text} May be repeated."
        )(command)
    command = click.option("--cluster", is_flag=True, help="The cluster itself.")(command)
    return click.option(
        "--resource-pattern-type",
        "pattern",
        type=click.Choice(["literal", "prefixed"]),
        default="literal",
        show_default=True,
        help="Whether names are whole names, or what names begin with.",
    )(command)


def _conveniences(command: F) -> F:
    """What rules allow."""
    operation = click.option(
        "--operation",
        "operations",
        type=_Operation(),
        multiple=True,
        metavar="NAME",
        help="Read, Write, Describe, ...; default: All. May be repeated.",
    )
    deny = click.option("--deny", is_flag=True, help="Rules that deny, not that allow.")
    producer = click.option("--producer", is_flag=True, help="All that a producer needs.")
    consumer = click.option("--consumer", is_flag=True, help="All that a consumer needs.")
    idempotent = click.option(
        "--idempotent", is_flag=True, help="What an idempotent producer before Kafka 2.8 needs."
    )
    return operation(deny(producer(consumer(idempotent(command)))))


@click.group()
def acls() -> None:
    """Add, list and remove the rules by which users may do something, and explain decisions.

    Without a rule that allows it nobody but super users may do anything; a rule that denies comes
    before all that allow. Brokers need authorizer.class.name, as with `server start --secure`.

    \b
    Examples:
      barnabas acls add --user alice --producer --topic orders
      barnabas acls add --user bob --consumer --topic orders --group billing
      barnabas acls list --topic orders
      barnabas acls explain --user alice --operation write --topic orders
      barnabas acls remove --user alice --topic orders
    """


@acls.command()
@_users
@_resources
@_conveniences
@bootstrap_server
def add(servers: str, **given: Any) -> None:
    """Add rules.

    \b
    Examples:
      barnabas acls add --user alice --producer --topic orders
      barnabas acls add --user bob --consumer --topic orders- --resource-pattern-type prefixed \\
          --group billing
      barnabas acls add --user eve --deny --operation read --topic '*'
    """
    wanted = _wanted(given)
    _check(wanted)
    run_client(_create(servers, wanted))
    for rule in wanted:
        click.echo(f"Added: {shown(rule)}")


@acls.command()
@_users
@_resources
@_conveniences
@click.option("--force", is_flag=True, help="Do not ask.")
@bootstrap_server
def remove(servers: str, force: bool, **given: Any) -> int:
    """Remove rules: those that the same options of `add` would add, or with a user or a resource
    alone all rules of it.

    \b
    Examples:
      barnabas acls remove --user alice --producer --topic orders
      barnabas acls remove --user alice
      barnabas acls remove --topic orders --force
    """
    filters = _filters(given)
    found = run_client(_described(servers, filters))
    if not found:
        click.echo("No rule matches.")
        return EXIT_OK
    if not force and sys.stdin.isatty():
        for rule in found:
            click.echo(shown(rule))
        click.confirm(f"Remove {counted(len(found), 'rule')}?", abort=True)
    for rule in run_client(_delete(servers, filters)):
        click.echo(f"Removed: {shown(rule)}")
    return EXIT_OK


@acls.command("list")
@_users
@_resources
@bootstrap_server
@as_json
def list_(servers: str, as_json: bool, **given: Any) -> None:
    """List rules; those about a topic include rules about all topics, and about prefixes of it.

    \b
    Examples:
      barnabas acls list
      barnabas acls list --topic orders
      barnabas acls list --user alice --json
    """
    found = run_client(_described(servers, _listed(given)))
    if as_json:
        click.echo(json.dumps([_values(rule) for rule in found], indent=2))
        return
    for rule in found:
        click.echo(shown(rule))


@acls.command()
@click.option("--user", metavar="NAME", help="Who wants to do it.")
@click.option("--principal", metavar="TYPE:NAME", help="The same with its type.")
@click.option("--host", metavar="IP", default="127.0.0.1", show_default=True, help="From where.")
@click.option(
    "--operation", type=_Operation(), required=True, metavar="NAME", help="What: read, write, ..."
)
@_resources
@bootstrap_server
@as_json
def explain(
    servers: str,
    user: str | None,
    principal: str | None,
    host: str,
    operation: Operation,
    as_json: bool,
    **given: Any,
) -> int:
    """Say which rule decides whether a user may do something, and why.

    It is decided by the brokers' rules alone: super users, who may do everything, and
    allow.everyone.if.no.acl.found cannot be seen from outside. Exit code 1: denied.

    \b
    Examples:
      barnabas acls explain --user alice --operation write --topic orders
    """
    who = _principals({"named": [user] if user else [], "principals": filter(None, [principal])})
    resources = resources_of(given)
    if len(who) != 1 or len(resources) != 1:
        raise click.UsageError("name one user and one resource")
    kind, name = resources[0]
    question = Question(who[0], host, operation, kind, name)
    about = AclFilter(kind, name, PatternType.MATCH)
    decision = explained(question, run_client(_described(servers, [about])))
    if as_json:
        values = {"allowed": decision.is_allowed, "reason": decision.reason}
        click.echo(json.dumps({**values, "rules": list(map(_values, decision.rules))}, indent=2))
    else:
        _print(question, decision)
    return EXIT_OK if decision.is_allowed else EXIT_FAILURE


def _print(question: Question, decision: Explanation) -> None:
    click.echo(f"{'allowed' if decision.is_allowed else 'denied'}: {question}")
    click.echo(f"because {decision.reason}")
    for rule in decision.rules:
        click.echo(f"  {shown(rule)}")
    if not decision.is_allowed and not decision.rules:
        option = f"--{pascal_name(question.resource_type).lower()}"
        if question.resource_type is ResourceType.TRANSACTIONAL_ID:
            option = "--transactional-id"
        name = "" if question.resource_type is ResourceType.CLUSTER else f" {question.name}"
        click.echo(
            f"barnabas acls add --principal {question.principal} "
            f"--operation {pascal_name(question.operation)} {option}{name}"
        )


# --- what the options stand for ------------------------------------------------------------------


def _principals(given: dict[str, Any]) -> list[str]:
    named = [f"User:{name}" for name in given["named"]]
    for principal in given["principals"]:
        if ":" not in principal:
            raise click.UsageError(f"--principal {principal}: write it as User:name, or --user")
        named.append(principal)
    return named


def _options(given: dict[str, Any]) -> Options:
    return Options(
        _principals(given),
        given["hosts"],
        resources_of(given),
        given["operations"],
        _PATTERN_TYPES[given["pattern"]],
        PermissionType.DENY if given["deny"] else PermissionType.ALLOW,
        given["producer"],
        given["consumer"],
        given["idempotent"],
    )


def _wanted(given: dict[str, Any]) -> list[AclBinding]:
    try:
        return bindings(_options(given))
    except Incomplete as error:
        raise click.UsageError(str(error)) from error


def _check(wanted: Sequence[AclBinding]) -> None:
    """Raises UsageError for an operation that means nothing for its resource."""
    for (kind, _, _), (_, _, operation, _) in wanted:
        known = OPERATIONS[kind].split()
        if operation is not Operation.ALL and pascal_name(operation) not in known:
            what = pascal_name(kind).lower()
            raise click.UsageError(
                f"--operation {pascal_name(operation)}: of a {what} there are {', '.join(known)}"
            )


def _filters(given: dict[str, Any]) -> list[AclFilter]:
    """Of what is to be removed."""
    options = _options(given)
    is_narrow = given["producer"] or given["consumer"] or given["idempotent"]
    if is_narrow or (options.principals and options.resources and options.operations):
        return [
            AclFilter(
                pattern.resource_type,
                pattern.name,
                pattern.pattern_type,
                entry.principal,
                entry.host,
                entry.operation,
                entry.permission,
            )
            for pattern, entry in _wanted(given)
        ]
    if not options.principals and not options.resources:
        raise click.UsageError("name whose rules, or what they are about: --user, --topic, ...")
    hosts = options.hosts or (None,)
    permission = PermissionType.DENY if given["deny"] else PermissionType.ANY
    resources: list[tuple[ResourceType, str | None, PatternType]] = [
        (*each, options.pattern_type) for each in options.resources
    ]
    return [
        AclFilter(*resource, principal, host, operation, permission)
        for resource in resources or [_ANY]
        for principal in options.principals or (None,)
        for host in hosts
        for operation in options.operations or (Operation.ANY,)
    ]


def _listed(given: dict[str, Any]) -> list[AclFilter]:
    resources: list[tuple[ResourceType, str | None, PatternType]] = [
        (*each, PatternType.MATCH) for each in resources_of(given)
    ]
    return [
        AclFilter(*resource, principal, host)
        for resource in resources or [_ANY]
        for principal in _principals(given) or (None,)
        for host in given["hosts"] or (None,)
    ]


def _values(rule: AclBinding) -> dict[str, str]:
    (resource_type, name, pattern_type), (principal, host, operation, permission) = rule
    return {
        "resourceType": pascal_name(resource_type),
        "name": name,
        "patternType": pascal_name(pattern_type),
        "principal": principal,
        "host": host,
        "operation": pascal_name(operation),
        "permission": pascal_name(permission),
    }


# --- requests ------------------------------------------------------------------------------------


async def _create(servers: str, wanted: Sequence[AclBinding]) -> None:
    async with Admin(servers, **client_options()) as admin:
        await admin.create_acls(wanted)


async def _described(servers: str, filters: Sequence[AclFilter]) -> list[AclBinding]:
    async with Admin(servers, **client_options()) as admin:
        found = [rule for each in filters for rule in await admin.describe_acls(each)]
        return sorted(set(found))


async def _delete(servers: str, filters: Sequence[AclFilter]) -> list[AclBinding]:
    async with Admin(servers, **client_options()) as admin:
        return await admin.delete_acls(filters)
