"""Implements `barnabas acls`, which shows, explains and changes a cluster's ACLs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence

import click

from barnabas.cli.acls import options
from barnabas.cli.acls.grants import Clients, Deeds, bindings, filter_of
from barnabas.cli.acls.text import (
    explanation_lines,
    letting_in,
    rule_line,
    rule_values,
)
from barnabas.cli.connection import bootstrap_server, client_options
from barnabas.cli.group import command_group
from barnabas.cli.options import as_json, run_client
from barnabas.client.admin.admin import Admin
from barnabas.counted import counted
from barnabas.security.acl_binding import (
    WILDCARD,
    AclBinding,
    AclFilter,
    Pattern,
    PatternType,
    PermissionType,
    pascal_name,
)
from barnabas.security.acl_explanation import Access, explain
from barnabas.security.acl_host import matches_no_client
from barnabas.security.acl_text import resource_text, rule_text

_OF_RULES = ("literal", "prefixed")
_OF_FILTERS = ("literal", "prefixed", "match", "any")


@command_group()
def acls() -> None:
    """Add, list and delete access rules, and explain what they allow and deny.

    Users may do whatever a rule allows and no rule denies. Users in the brokers' super.users may do
    everything.

    \b
    Examples:
      barnabas acls add --user alice --producer --topic orders
      barnabas acls add --user bob --consumer --topic orders --group billing
      barnabas acls list --topic orders
      barnabas acls explain --user bob --operation write --topic orders
    """


@acls.command()
@options.principals
@options.deeds
@options.resources(_OF_RULES, "literal")
@options.hosts
@click.option("--deny", is_flag=True, help="Deny; a deny rule overrides every allow rule.")
@bootstrap_server
def add(
    principals: tuple[str, ...],
    deeds: Deeds,
    patterns: list[Pattern],
    hosts: tuple[str, ...],
    deny: bool,
    servers: str,
) -> None:
    """Add rules. A rule that already exists is kept.

    \b
    Examples:
      barnabas acls add --user alice --producer --topic orders
      barnabas acls add --user bob --consumer --topic orders --group billing
      barnabas acls add --user bob --operation read --topic o- --resource-pattern-type prefixed
      barnabas acls add --user eve --deny --operation all --topic '*' --host 10.0.0.7
    """
    if not principals:
        raise click.UsageError("name the users: --user NAME")
    if not patterns:
        raise click.UsageError("name a resource: --topic, --group, --cluster, ...")
    if not deeds.is_role and not deeds.operations:
        raise click.UsageError("name the operations: --producer, --consumer or --operation NAME")
    if deeds.is_role and deny:
        raise click.UsageError("--deny needs --operation NAME instead of a role")
    options.check(deeds, patterns)
    # Brokers would store such a rule, but it would have no effect because it matches no client.
    for host in filter(matches_no_client, hosts):
        raise click.UsageError(
            f"--host {host}: no client would match it. --host takes the address of one client, "
            "not a host name or range; repeat the option for several, or leave it out for all"
        )
    permission = PermissionType.DENY if deny else PermissionType.ALLOW
    rules = bindings(Clients(principals, hosts or (WILDCARD,), permission), deeds, patterns)
    run_client(_create(servers, rules))
    click.echo(f"Added {counted(len(rules), 'rule')}:")
    _print_rules(rules)


@acls.command()
@options.principals
@options.deeds
@options.resources(_OF_FILTERS, "literal")
@options.hosts
@click.option(
    "--allow/--deny", "allow", default=None, help="Only rules with this permission: allow or deny."
)
@click.option("--force", is_flag=True, help="Delete without asking for confirmation on a terminal.")
@bootstrap_server
def delete(  # noqa: PLR0913  (a command's parameters are its options)
    principals: tuple[str, ...],
    deeds: Deeds,
    patterns: list[Pattern],
    hosts: tuple[str, ...],
    allow: bool | None,
    force: bool,
    servers: str,
) -> None:
    """Delete the rules that match all of the options.

    \b
    Examples:
      barnabas acls delete --user alice --producer --topic orders
      barnabas acls delete --user bob
      barnabas acls delete --topic orders --force
    """
    # Without a filter, all of the cluster's rules would be deleted.
    if not principals and not patterns:
        raise click.UsageError("name the rules to delete: --user NAME, --topic NAME, ...")
    wanted = _filters((principals, hosts), deeds, patterns, allow)
    rules = run_client(_describe_rules(servers, wanted))
    if not rules:
        click.echo("No matching rules.")
        return
    # A script with piped input cannot answer a prompt.
    if not force and sys.stdin.isatty():
        _print_rules(rules)
        click.confirm(f"Delete {counted(len(rules), 'rule')}?", abort=True)
    deleted = run_client(_delete(servers, rules))
    click.echo(f"Deleted {counted(len(deleted), 'rule')}:")
    _print_rules(deleted)


@acls.command("list")
@options.principals
@options.deeds
@options.resources(_OF_FILTERS, "match")
@options.hosts
@click.option(
    "--allow/--deny", "allow", default=None, help="Only rules with this permission: allow or deny."
)
@as_json
@bootstrap_server
def list_(  # noqa: PLR0913  (a command's parameters are its options)
    principals: tuple[str, ...],
    deeds: Deeds,
    patterns: list[Pattern],
    hosts: tuple[str, ...],
    allow: bool | None,
    as_json: bool,
    servers: str,
) -> None:
    """List the rules that match the options, or all rules.

    A topic selects all rules that apply to it, including those for prefixes and for '*'.

    \b
    Examples:
      barnabas acls list
      barnabas acls list --topic orders --json
      barnabas acls list --user alice
    """
    wanted = _filters((principals, hosts), deeds, patterns, allow)
    rules = run_client(_describe_rules(servers, wanted))
    if as_json:
        click.echo(json.dumps([rule_values(each) for each in rules], indent=2))
    elif sys.stdout.isatty():
        _show_table(rules)
    else:
        for each in rules:
            click.echo("\t".join(rule_values(each).values()))


@acls.command("explain")
@options.principals
@click.option(
    "--operation", required=True, metavar="NAME", help=("The operation, such as read or write.")
)
@options.resources(("literal",), "literal")
@click.option("--host", default=WILDCARD, metavar="ADDRESS", help="The client's address.")
@as_json
@bootstrap_server
def explain_(
    principals: tuple[str, ...],
    operation: str,
    patterns: list[Pattern],
    host: str,
    as_json: bool,
    servers: str,
) -> None:
    """Explain whether a user may do something, which rule decides, and what would allow it.

    Without --host, an address that appears in no rule is assumed.

    \b
    Examples:
      barnabas acls explain --user alice --operation write --topic orders
      barnabas acls explain --user bob --operation read --group billing --host 10.0.0.7
    """
    if len(principals) != 1 or len(patterns) != 1:
        raise click.UsageError("name one user and one resource: --user NAME --topic NAME")
    (resource,) = patterns
    wanted = options.operation(operation)
    options.check(Deeds(operations=(wanted,)), patterns)
    access = Access(principals[0], wanted, resource, host)
    # MATCH selects all rules that could apply to this resource: literal, prefixed and '*' rules.
    about = AclFilter(resource.resource_type, resource.name, PatternType.MATCH)
    found = explain(access, run_client(_describe_rules(servers, [about])))
    if not as_json:
        click.echo("\n".join(explanation_lines(access, found)))
        return
    said = {
        "allowed": bool(found.is_allowed),
        # If this is null, no rule matches, and `allowed` is the brokers' default.
        "rule": found.rule and rule_values(found.rule),
        "rules_about_it": len(found.about),
        "lets_in": None if found.is_allowed else rule_line(letting_in(access)),
    }
    click.echo(json.dumps(said, indent=2))


def _filters(
    clients: tuple[tuple[str, ...], tuple[str, ...]],
    deeds: Deeds,
    patterns: list[Pattern],
    allow: bool | None,
) -> list[AclFilter]:
    options.check(deeds, patterns)
    permission = {None: PermissionType.ANY, True: PermissionType.ALLOW, False: PermissionType.DENY}
    # A role consists of allow rules only.
    wanted = permission[True] if deeds.is_role else permission[allow]
    return options.filters(patterns, deeds, clients, wanted)


def _print_rules(rules: Iterable[AclBinding]) -> None:
    for each in rules:
        click.echo(f"  {rule_text(each)}")


def _show_table(rules: Iterable[AclBinding]) -> None:
    """Print a table of the rules on a terminal, with deny rules highlighted."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=True, header_style="dim")
    for title in ("resource", "principal", "", "operation", "host"):
        table.add_column(title, overflow="fold")
    for pattern, entry in rules:
        denies = entry.permission is PermissionType.DENY
        table.add_row(
            Text(resource_text(pattern)),
            Text(entry.principal),
            Text(entry.permission.name.lower(), style="bold red" if denies else ""),
            Text(pascal_name(entry.operation)),
            Text("any" if entry.host == WILDCARD else entry.host),
        )
    Console(highlight=False).print(table if table.row_count else "No rules.")


async def _create(servers: str, rules: Sequence[AclBinding]) -> None:
    async with Admin(servers, **client_options()) as admin:
        await admin.create_acls(rules)


async def _describe_rules(servers: str, wanted: Iterable[AclFilter]) -> list[AclBinding]:
    async with Admin(servers, **client_options()) as admin:
        found = {rule for each in wanted for rule in await admin.describe_acls(each)}
    return sorted(found)


async def _delete(servers: str, rules: Iterable[AclBinding]) -> list[AclBinding]:
    """Delete exactly these rules, and none that were added after these were shown."""
    async with Admin(servers, **client_options()) as admin:
        return sorted(await admin.delete_acls(map(filter_of, rules)))
