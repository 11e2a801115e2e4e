"""SE-4: the rules decide as a plain reading of all of them does; nodes keep what is written."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from barnabas.security import acl_nodes
from barnabas.security.acl import Operation, ResourceType
from barnabas.security.acl_binding import (
    AclBinding,
    AclEntry,
    AclFilter,
    Pattern,
    PatternType,
    PermissionType,
)
from barnabas.security.acl_explanation import Access, explain
from barnabas.security.acl_rules import AclRules
from tests.kit.effort import examples

ALLOW, DENY = PermissionType.ALLOW, PermissionType.DENY
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
ROOT = "User:root"

# Few of each, so that many rules are about what is asked; names begin with one another.
operations = st.sampled_from([each for each in Operation if each is not Operation.ANY])
types = st.sampled_from([ResourceType.TOPIC, ResourceType.GROUP])
clients = st.sampled_from(["User:alice", "User:bob", "Group:alice", ROOT])
addresses = st.sampled_from(["10.0.0.1", "10.0.0.2", "0:0:0:0:0:0:0:1"])
names = st.text("ab*", min_size=1, max_size=4)
patterns = st.builds(Pattern, types, names | st.just("*"), st.sampled_from([LITERAL, PREFIXED]))
entries = st.builds(
    AclEntry,
    clients | st.just("User:*"),
    addresses | st.just("*"),
    operations,
    st.sampled_from([ALLOW, DENY]),
)
bindings = st.builds(AclBinding, patterns, entries)


class Asked(NamedTuple):
    """One decision to make."""

    principal: str
    host: str
    operation: Operation
    resource_type: ResourceType
    name: str


questions = st.builds(Asked, clients, addresses, operations, types, names)


def is_about(pattern: Pattern, asked: Asked) -> bool:
    if pattern.resource_type is not asked.resource_type:
        return False
    if pattern.pattern_type is PREFIXED:
        return asked.name.startswith(pattern.name)
    return pattern.name in (asked.name, "*")


def is_for(entry: AclEntry, asked: Asked, wanted: Collection[Operation]) -> bool:
    return (
        entry.principal in (asked.principal, "User:*")
        and entry.host in (asked.host, "*")
        and (entry.operation is Operation.ALL or entry.operation in wanted)
    )


def is_allowed(rules: set[AclBinding], asked: Asked, *, allows_unruled: bool) -> bool:
    """Super users, then the rules about the resource: none; one that denies; one that allows."""
    if asked.principal == ROOT:
        return True
    about = [entry for pattern, entry in rules if is_about(pattern, asked)]
    if not about:
        return allows_unruled
    own = {asked.operation}
    if any(entry.permission is DENY and is_for(entry, asked, own) for entry in about):
        return False
    implying = {
        Operation.DESCRIBE: {Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER},
        Operation.DESCRIBE_CONFIGS: {Operation.ALTER_CONFIGS},
    }
    wanted = own | implying.get(asked.operation, set())
    return any(entry.permission is ALLOW and is_for(entry, asked, wanted) for entry in about)


def is_allowed_somewhere(rules: set[AclBinding], asked: Asked, *, allows_unruled: bool) -> bool:
    """By KIP-679: a rule of just this operation that allows, and none that denies all it is about:
    the wildcard, its own name, or a prefix of its name."""
    if asked.principal == ROOT:
        return True
    own = {
        permission: [
            pattern
            for pattern, entry in rules
            if pattern.resource_type is asked.resource_type
            and entry.permission is permission
            and is_for(entry, asked, {asked.operation})
        ]
        for permission in (ALLOW, DENY)
    }
    everything = Pattern(asked.resource_type, "*")
    if everything in own[DENY]:
        return False
    if allows_unruled:
        return True
    return any(
        given == everything
        or not any(
            denied == given
            if denied.pattern_type is LITERAL
            else given.name.startswith(denied.name)
            for denied in own[DENY]
        )
        for given in own[ALLOW]
    )


def in_force(rules: Collection[AclBinding], *, allows_unruled: bool) -> AclRules:
    found = AclRules([ROOT], allows_unruled=allows_unruled)
    for pattern, entry in rules:
        found.replace(pattern, found.entries_of(pattern) | {entry})
    return found


@pytest.mark.thorough
@settings(max_examples=examples(500))
@given(st.sets(bindings, max_size=12), st.lists(questions, min_size=1, max_size=8), st.booleans())
@example(  # of ALL only ALL allows all
    {
        AclBinding(
            Pattern(ResourceType.TOPIC, "a"), AclEntry("User:bob", "*", Operation.READ, ALLOW)
        )
    },
    [Asked("User:bob", "10.0.0.1", Operation.ALL, ResourceType.TOPIC, "a")],
    False,
)
def test_se_4_decisions_are_those_of_a_plain_reading(
    rules: set[AclBinding], asked: list[Asked], allows_unruled: bool
) -> None:
    found = in_force(rules, allows_unruled=allows_unruled)
    for one in asked:
        wanted = is_allowed(rules, one, allows_unruled=allows_unruled)
        assert found.allows(*one) is wanted
        somewhere = is_allowed_somewhere(rules, one, allows_unruled=allows_unruled)
        assert found.allows_somewhere(*one[:4]) is somewhere


@settings(max_examples=examples(200))
@given(st.lists(st.tuples(bindings, st.booleans()), max_size=25), st.lists(questions, max_size=5))
def test_se_4_rules_that_come_and_go_leave_nothing_behind(
    changes: list[tuple[AclBinding, bool]], asked: list[Asked]
) -> None:
    """After any changes the decisions are those of the rules that are left."""
    rules: set[AclBinding] = set()
    found = in_force((), allows_unruled=False)
    for (pattern, entry), is_added in changes:
        changed = {AclBinding(pattern, entry)}
        rules = rules | changed if is_added else rules - changed
        before = found.entries_of(pattern)
        found.replace(pattern, before | {entry} if is_added else before - {entry})
    assert set(found.bindings(AclFilter())) == rules
    assert len(found) == len(rules)
    for one in asked:
        assert found.allows(*one) is is_allowed(rules, one, allows_unruled=False)
        somewhere = is_allowed_somewhere(rules, one, allows_unruled=False)
        assert found.allows_somewhere(*one[:4]) is somewhere


@settings(max_examples=examples(200))
@given(st.sets(bindings, max_size=12), questions)
def test_se_4_an_explanation_is_the_decision(rules: set[AclBinding], asked: Asked) -> None:
    if asked.principal == ROOT:
        return  # who is a super user is not in the rules
    access = Access(
        asked.principal, asked.operation, Pattern(asked.resource_type, asked.name), asked.host
    )
    explained = explain(access, rules).is_allowed
    for allows_unruled in (False, True):
        found = in_force(rules, allows_unruled=allows_unruled).allows(*asked)
        assert found is (allows_unruled if explained is None else explained)


# --- nodes ---------------------------------------------------------------------------------------

texts = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=20)
principals = st.builds("{}:{}".format, st.from_regex(r"[A-Za-z]{1,9}", fullmatch=True), texts)
stored_entries = st.builds(AclEntry, principals, texts, operations, st.sampled_from([ALLOW, DENY]))
stored_patterns = st.builds(
    Pattern, st.sampled_from(acl_nodes.RESOURCE_TYPES), texts, st.sampled_from([LITERAL, PREFIXED])
)


@settings(max_examples=examples(200))
@given(st.frozensets(stored_entries, max_size=5))
def test_se_4_a_node_keeps_its_entries(written: frozenset[AclEntry]) -> None:
    assert acl_nodes.decode_entries("/node", acl_nodes.encode_entries(written)) == written


@settings(max_examples=examples(200))
@given(stored_patterns)
def test_se_4_a_change_node_names_its_pattern(changed: Pattern) -> None:
    path = f"{acl_nodes.change_path(changed.pattern_type)}0000000001"
    assert acl_nodes.decode_change(path, acl_nodes.encode_change(changed)) == changed
