"""Formats ACLs as sentences, and as the commands that add or remove them."""

from __future__ import annotations

import shlex
from typing import Final

from barnabas.counted import counted
from barnabas.security.acl import Operation, ResourceType
from barnabas.security.acl_binding import (
    WILDCARD,
    AclBinding,
    AclEntry,
    Pattern,
    PatternType,
    PermissionType,
    pascal_name,
)
from barnabas.security.acl_explanation import Access, Explanation
from barnabas.security.acl_text import host_text, resource_text, rule_text

_OPTIONS: Final = {
    ResourceType.TOPIC: "--topic",
    ResourceType.GROUP: "--group",
    ResourceType.TRANSACTIONAL_ID: "--transactional-id",
    ResourceType.DELEGATION_TOKEN: "--delegation-token",
    ResourceType.USER: "--user-principal",
}


def rule_line(rule: AclBinding, command: str = "add") -> str:
    """Return the command that adds or deletes exactly this rule."""
    pattern, entry = rule
    words = ["barnabas", "acls", command]
    if entry.permission is PermissionType.DENY:
        words.append("--deny")
    elif command == "delete":
        words.append("--allow")
    words += principal_words(entry.principal)
    words += ["--operation", entry.operation.name.lower().replace("_", "-")]
    # A deletion without --host would select the rules for all hosts.
    if entry.host != WILDCARD or command == "delete":
        words += ["--host", entry.host]
    return shlex.join([*words, *resource_words(pattern)])


def principal_words(principal: str) -> list[str]:
    kind, _, name = principal.partition(":")
    return ["--user", name] if kind == "User" else ["--principal", principal]


def resource_words(pattern: Pattern) -> list[str]:
    """Return the `barnabas acls` options that specify a resource."""
    if pattern.resource_type is ResourceType.CLUSTER:
        return ["--cluster"]
    words = [_OPTIONS[pattern.resource_type], pattern.name]
    if pattern.pattern_type is not PatternType.LITERAL:
        words += ["--resource-pattern-type", pattern.pattern_type.name.lower()]
    return words


def rule_values(rule: AclBinding) -> dict[str, str]:
    """Return a rule as values for JSON, using Kafka's terms."""
    pattern, entry = rule
    return {
        "principal": entry.principal,
        "permission": entry.permission.name,
        "operation": entry.operation.name,
        "host": entry.host,
        "resource_type": pattern.resource_type.name,
        "name": pattern.name,
        "pattern_type": pattern.pattern_type.name,
    }


def letting_in(access: Access) -> AclBinding:
    """Return the rule that allows exactly this access."""
    entry = AclEntry(access.principal, access.host, access.operation, PermissionType.ALLOW)
    return AclBinding(access.resource, entry)


def explanation_lines(access: Access, found: Explanation) -> list[str]:
    """Return lines that state the decision, its rule, the reason, and how to reverse it."""
    verdict = {True: "Allowed", False: "Denied", None: "Denied by default"}[found.is_allowed]
    lines = [
        f"{verdict}: {access.principal}, {pascal_name(access.operation)} on "
        f"{resource_text(access.resource)}, {host_text(access.host)}."
    ]
    rule = found.rule
    if rule is None:
        lines += _without_rule(access, found)
    elif found.is_allowed:
        lines += [f"Rule: {rule_text(rule)}.", _why_allowed(access, rule)]
    else:
        lines += [
            f"Rule: {rule_text(rule)}.",
            "A deny rule overrides every allow rule. To remove it (allow rules then decide, "
            "unless another rule denies):",
            f"  {rule_line(rule, 'delete')}",
        ]
    # super.users is a broker setting, which the ACL API cannot show.
    if not found.is_allowed:
        lines.append(
            f"Not checked: whether {access.principal} is one of the brokers' super.users, who may "
            "do everything."
        )
    return lines


def _without_rule(access: Access, found: Explanation) -> list[str]:
    resource = resource_text(access.resource)
    if found.is_allowed is None:
        why = (
            f"No rule applies to {resource}: only super users may use it, unless the brokers "
            "have allow.everyone.if.no.acl.found=true."
        )
    else:
        checked = counted(len(found.about), "rule")
        why = f"No rule for {resource} allows it ({checked} checked)."
    lines = [why]
    lines += [
        f"Similar: {rule_text(each)}."
        for each in found.about
        # Rules for the same user but another operation or host usually mean a typing error.
        if each.entry.principal == access.principal
    ][:5]
    lines += ["To allow it:", f"  {rule_line(letting_in(access))}"]
    # Another common mistake is to allow fetching from the topic but not joining the group.
    if access.operation is Operation.READ and access.resource.resource_type is ResourceType.TOPIC:
        lines.append(
            "A consumer also needs to read its group: --consumer --group GROUP allows both."
        )
    return lines


def _why_allowed(access: Access, rule: AclBinding) -> str:
    operation = rule.entry.operation
    if operation is access.operation:
        return "No rule denies it."
    if operation is Operation.ALL:
        return "All includes every operation, and no rule denies it."
    return (
        f"{pascal_name(operation)} implies {pascal_name(access.operation)}, and no rule denies it."
    )
