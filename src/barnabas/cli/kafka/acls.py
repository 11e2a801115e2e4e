"""Implements `kafka-acls.sh`, which adds, removes and lists access rules."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Final

import click

from barnabas.cli.acls.grants import (
    CLUSTER,
    BadGrant,
    Clients,
    Deeds,
    check_deeds,
    entries,
    filter_of,
    is_specific,
    operations_by_pattern,
)
from barnabas.cli.acls.text import principal_words, resource_words
from barnabas.cli.kafka.options import BadCommandLine, Given, flags, values
from barnabas.cli.kafka.tool import (
    BROKER_LIST,
    Line,
    NotCovered,
    Retired,
    Tool,
    admin_of,
    at_servers,
    flag_words,
    servers,
)
from barnabas.cli.kafka.zookeeper_acls import (
    ZooKeeperAcls,
    is_by_authorizer,
    warn_of_authorizer,
    zookeeper_acls,
)
from barnabas.cli.main import EXIT_OK
from barnabas.cli.options import run_client
from barnabas.security.acl import Operation, ResourceType
from barnabas.security.acl_binding import (
    WILDCARD,
    AclBinding,
    AclEntry,
    AclFilter,
    Pattern,
    PatternType,
    PermissionType,
    by_pattern,
    parse_code,
    parse_principal,
)
from barnabas.security.acl_host import matches_no_client

if TYPE_CHECKING:
    from barnabas.client.admin.admin import Admin

_Wanted = dict[Pattern, list[AclEntry]]

_ACTIONS: Final = ("list", "add", "remove")
_TYPES: Final = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional-id": ResourceType.TRANSACTIONAL_ID,
    "delegation-token": ResourceType.DELEGATION_TOKEN,
    "user-principal": ResourceType.USER,
}
_SIDES: Final = {"allow": PermissionType.ALLOW, "deny": PermissionType.DENY}
_OF_KRAFT = Retired("Barnabas has no KRaft controllers: name a broker with --bootstrap-server", "")


def explain(given: Given) -> list[Line]:
    """Return the equivalent `barnabas` commands."""
    action = _action(given)
    if is_by_authorizer(given):
        raise NotCovered(
            "our command for rules sends requests to brokers only; without --explain, this "
            "line runs unchanged"
        )
    patterns = _patterns(given)
    end = at_servers(given)
    if action == "list":
        words = [word for each in _principals(given, "principal") for word in principal_words(each)]
        return [["acls", "list", *words, *_resources(patterns, is_list=True), *end]]
    if action == "add":
        wanted = _rules_to_add(given)
    else:
        wanted = _rules_of_line(given)
        end = [*flag_words(given, "force"), *end]
        # As in Kafka, --remove without a principal removes all rules for the resources.
        if not any(wanted.values()):
            return [["acls", "remove", *_resources(list(wanted)), *end]]
    deeds = _deeds(given)
    # Our command accepts the same roles. Without a role, name the operations, because Kafka's
    # default is all operations and our command has no default.
    what = flag_words(given, "producer", "consumer", "idempotent")
    if not deeds.is_role:
        what = [
            word
            for each in deeds.operations
            for word in ("--operation", each.name.lower().replace("_", "-"))
        ]
    # --idempotent needs a cluster rule, which our --idempotent adds automatically.
    named_resources = [each for each in patterns if each != CLUSTER or "cluster" in given]
    return [
        ["acls", action, *_who(clients, action), *what, *_resources(named_resources), *end]
        # A single command line of Kafka's tool can both allow and deny. One of ours can do only one
        # of the two.
        for clients in _clients(given)
    ]


def run(given: Given) -> int:
    """Execute the command line, and print Kafka's output."""
    action = _action(given)
    if is_by_authorizer(given):
        warn_of_authorizer()
    if action == "add":
        rules = _rules_to_add(given)
        _warn_of_hosts(rules)
        run_client(_add(given, rules))
    elif action == "remove":
        wanted = {
            pattern: acls
            for pattern, acls in _rules_of_line(given).items()
            if "force" in given or _is_confirmed(pattern, acls)
        }
        run_client(_remove(given, wanted))
    else:
        _print_list(given)
    return EXIT_OK


# --- the line ----------------------------------------------------------------------------------


def _action(given: Given) -> str:
    """Return the action of the command line. Raises BadCommandLine with the tool's message."""
    action = given.one_of(
        *_ACTIONS,
        complaint="Command must include exactly one action: --list, --add, --remove. ",
    )
    if action == "list":
        # In a list, --principal is a filter. Kafka rejects options that describe a rule.
        given.not_with("list", "producer", "consumer", "allow-host", "allow-principal")
        given.not_with("list", "deny-host", "deny-principal")
    elif "principal" in given:
        raise BadCommandLine("The --principal option is only available if --list is set")
    for role in ("producer", "consumer"):
        given.not_with(role, "operation", "deny-principal", "deny-host")
    # With both roles, accept the cluster and transactional ids, because a producer can use them.
    if "consumer" in given and "producer" not in given:
        for other in ("cluster", "transactional-id"):
            given.not_with("consumer", other)
    if not is_by_authorizer(given):
        servers(given)
    return action


def _patterns(given: Given) -> list[Pattern]:
    """Return the resource patterns. The patterns of filters may have any pattern type."""
    text = given.text("resource-pattern-type") or "literal"
    try:
        kind = parse_code(PatternType, text)
    except ValueError as error:
        raise BadCommandLine(f"--resource-pattern-type: {error}") from None
    found = [
        Pattern(resource_type, name.strip(), kind)
        for option, resource_type in _TYPES.items()
        for name in given.texts(option)
    ]
    # The cluster has a single name, never a prefix, so Kafka adds it only to literal patterns.
    if kind is PatternType.LITERAL and ("cluster" in given or "idempotent" in given):
        found.append(CLUSTER)
    return found


def _deeds(given: Given) -> Deeds:
    try:
        operations = tuple(
            parse_code(Operation, text.strip().replace("-", "_"))
            # Kafka's default is all operations, but `barnabas acls add` requires at least one
            # operation.
            for text in given.texts("operation") or ["All"]
        )
    except ValueError as error:
        raise BadCommandLine(f"--operation: {error}") from None
    is_role = "producer" in given or "consumer" in given
    return Deeds(
        "producer" in given,
        "consumer" in given,
        "idempotent" in given,
        () if is_role else operations,
    )


def _principals(given: Given, option: str) -> list[str]:
    try:
        return [str(parse_principal(text.strip())) for text in given.texts(option)]
    except ValueError as error:
        raise BadCommandLine(f"--{option}: {error}") from None


def _clients(given: Given) -> Iterator[Clients]:
    """Yield the allowed clients, then the denied ones."""
    for side, permission in _SIDES.items():
        # Allowed hosts apply only to allowed principals, and denied hosts only to denied
        # principals. The default is every host.
        principals = tuple(_principals(given, f"{side}-principal"))
        hosts = tuple(host.strip() for host in given.texts(f"{side}-host")) or (WILDCARD,)
        if principals:
            yield Clients(principals, hosts, permission)


def _rules_of_line(given: Given) -> _Wanted:
    """Map each resource to its entries, which are empty if there is no principal. Raises
    BadCommandLine.
    """
    patterns = _patterns(given)
    if not patterns:
        raise BadCommandLine(
            "You must provide at least one resource: --topic <topic> or --cluster or --group "
            "<group> or --delegation-token <Delegation Token ID>"
        )
    deeds = _deeds(given)
    try:
        check_deeds(deeds, patterns)
        operations = operations_by_pattern(deeds, patterns)
    except BadGrant as error:
        raise BadCommandLine(str(error)) from None
    clients = list(_clients(given))
    return {
        pattern: [entry for each in clients for entry in entries(each, found)]
        for pattern, found in operations.items()
    }


def _rules_to_add(given: Given) -> _Wanted:
    """Return the rules that --add adds. Raises BadCommandLine if a client is missing."""
    wanted = _rules_of_line(given)
    for pattern in wanted:
        if not is_specific(pattern.pattern_type):
            raise BadCommandLine(
                f"A '--resource-pattern-type' value of '{pattern.pattern_type.name}' is not valid "
                "when adding acls."
            )
    if not any(wanted.values()):
        raise BadCommandLine(
            "You must specify one of: --allow-principal, --deny-principal when trying to add ACLs."
        )
    return wanted


def _warn_of_hosts(rules: _Wanted) -> None:
    """Warn about hosts that match no client. Kafka's tool adds such rules silently."""
    hosts = {entry.host: None for entries_ in rules.values() for entry in entries_}
    for host in filter(matches_no_client, hosts):
        click.echo(
            f"warning: no client matches host {host}: a rule contains the address of one client, "
            "not a name or a range",
            err=True,
        )


# --- ours ----------------------------------------------------------------------------------------


def _who(clients: Clients, action: str) -> Line:
    words = [word for each in clients.principals for word in principal_words(each)]
    if clients.permission is PermissionType.DENY:
        words.append("--deny")
    elif action == "remove":
        words.append("--allow")
    if clients.hosts != (WILDCARD,) or action == "remove":
        words += [word for host in clients.hosts for word in ("--host", host)]
    return words


def _resources(patterns: Sequence[Pattern], *, is_list: bool = False) -> Line:
    """Return our options for the names and their pattern type. The default pattern type of our
    `list` is different.
    """
    literal = PatternType.LITERAL
    words = [
        word for each in patterns for word in resource_words(each._replace(pattern_type=literal))
    ]
    kinds = {each.pattern_type for each in patterns}
    # A command line has only one --resource-pattern-type. Ignore the cluster, which is always
    # literal.
    if kinds - {literal} or (is_list and kinds):
        (kind,) = kinds - {literal} or {literal}
        words += ["--resource-pattern-type", kind.name.lower()]
    return words


# --- Kafka's output ------------------------------------------------------------------------------


def _resource(pattern: Pattern) -> str:
    return (
        f"`ResourcePattern(resourceType={pattern.resource_type.name}, name={pattern.name}, "
        f"patternType={pattern.pattern_type.name})`"
    )


def _lines(acls: Iterable[AclEntry]) -> str:
    """Return the rules as Kafka prints them, with a blank before and after each list."""
    shown = (
        f"\t(principal={each.principal}, host={each.host}, operation={each.operation.name}, "
        f"permissionType={each.permission.name})"
        for each in acls
    )
    # Kafka's template puts a blank on either side of the lines.
    return " {} \n".format("\n".join(shown))


def _is_confirmed(pattern: Pattern, acls: Sequence[AclEntry]) -> bool:
    resource = f"resource filter {_resource(pattern)}? (y/n)"
    if acls:
        question = f"Are you sure you want to remove ACLs: \n{_lines(acls)} from {resource}"
    else:
        question = f"Are you sure you want to delete all ACLs for {resource}"
    click.echo(question)
    return sys.stdin.readline().strip().lower() == "y"


def _keeper(given: Given) -> AbstractAsyncContextManager[Admin | ZooKeeperAcls]:
    """Open the store of the rules, which is either the brokers or the ZooKeeper tree that they
    read.
    """
    return zookeeper_acls(given) if is_by_authorizer(given) else admin_of(given)


async def _add(given: Given, wanted: _Wanted) -> None:
    # As in Kafka, print before sending, so that even a rejected request is shown.
    async with _keeper(given) as keeper:
        for pattern, acls in wanted.items():
            click.echo(f"Adding ACLs for resource {_resource(pattern)}: \n{_lines(acls)}")
            await keeper.create_acls([AclBinding(pattern, each) for each in acls])


async def _remove(given: Given, wanted: _Wanted) -> None:
    async with _keeper(given) as keeper:
        for pattern, acls in wanted.items():
            rules = [filter_of(AclBinding(pattern, each)) for each in acls]
            # Without entries, the filter consists of only the pattern, so it matches all rules for
            # the pattern.
            await keeper.delete_acls(rules or AclFilter(*pattern))


def _print_list(given: Given) -> None:
    principals = _principals(given, "principal")
    found = run_client(_describe(given, _patterns(given)))
    if not principals:
        _print_rules(found)
    for principal in principals:
        click.echo(f"ACLs for principal `{principal}`")
        _print_rules(each for each in found if each.entry.principal == principal)


def _print_rules(rules: Iterable[AclBinding]) -> None:
    for pattern, acls in by_pattern(rules).items():
        click.echo(f"Current ACLs for resource {_resource(pattern)}: \n{_lines(acls)}")


async def _describe(given: Given, patterns: Sequence[Pattern]) -> list[AclBinding]:
    wanted = [AclFilter(*each) for each in patterns] or [AclFilter()]
    async with _keeper(given) as keeper:
        return sorted({rule for each in wanted for rule in await keeper.describe_acls(each)})


TOOL = Tool(
    "This tool helps to manage acls on kafka.",
    values(
        "bootstrap-server=HOST:PORT command-config=FILE topic=TOPIC group=GROUP "
        "transactional-id=ID delegation-token=ID user-principal=PRINCIPAL "
        "resource-pattern-type=TYPE allow-principal=PRINCIPAL deny-principal=PRINCIPAL "
        "authorizer=CLASS authorizer-properties=NAME=VALUE zk-tls-config-file=FILE "
        "principal=PRINCIPAL allow-host=HOST deny-host=HOST operation=OPERATION"
    )
    + flags("add remove list cluster producer consumer idempotent force"),
    explain,
    run,
    {
        "broker-list": BROKER_LIST,
        "bootstrap-controller": _OF_KRAFT,
    },
)
