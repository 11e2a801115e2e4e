"""Which rule decides, in agreement with the rules themselves."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.security.acl import Operation, ResourceType
from barnabas.security.acl_binding import (
    AclBinding,
    AclEntry,
    Pattern,
    PatternType,
    PermissionType,
)
from barnabas.security.acl_explanation import Question, explained, shown
from barnabas.security.acl_rules import AclRules
from tests.kit.effort import examples

ALLOW, DENY = PermissionType.ALLOW, PermissionType.DENY
TOPIC = ResourceType.TOPIC


def rule(
    name: str,
    operation: Operation,
    permission: PermissionType = ALLOW,
    pattern_type: PatternType = PatternType.LITERAL,
) -> AclBinding:
    return AclBinding(
        Pattern(TOPIC, name, pattern_type), AclEntry("User:alice", "*", operation, permission)
    )


READ = Question("User:alice", "127.0.0.1", Operation.READ, TOPIC, "orders")


@pytest.mark.parametrize(
    ("rules", "is_allowed", "reason", "deciding"),
    [
        ([], False, "no rule is about", 0),
        ([rule("others", Operation.READ)], False, "no rule is about", 0),
        ([rule("orders", Operation.WRITE)], False, "none allows", 0),
        ([rule("orders", Operation.READ)], True, "a rule allows", 1),
        ([rule("ord", Operation.ALL, ALLOW, PatternType.PREFIXED)], True, "a rule allows", 1),
        ([rule("*", Operation.READ), rule("orders", Operation.READ, DENY)], False, "denies", 1),
    ],
)
def test_se_4_the_rule_that_decides(
    rules: list[AclBinding], is_allowed: bool, reason: str, deciding: int
) -> None:
    decision = explained(READ, rules)
    assert (decision.is_allowed, len(decision.rules)) == (is_allowed, deciding)
    assert reason in decision.reason


def test_se_4_an_operation_that_another_implies() -> None:
    decision = explained(
        READ._replace(operation=Operation.DESCRIBE), [rule("orders", Operation.WRITE)]
    )
    assert decision.is_allowed and decision.reason == "who may Write may Describe"


def test_a_rule_in_a_line() -> None:
    assert shown(rule("orders", Operation.READ)) == "User:alice may Read: topic orders"
    denied = rule("ord", Operation.ALL, DENY, PatternType.PREFIXED)
    assert shown(denied) == "User:alice may not All: topic those that begin with ord"


names = st.sampled_from(["*", "a", "ab", "abc", "b"])
entries = st.builds(
    AclEntry,
    st.sampled_from(["User:alice", "User:bob", "User:*"]),
    st.sampled_from(["*", "127.0.0.1", "10.0.0.1"]),
    st.sampled_from([each for each in Operation if each is not Operation.ANY]),
    st.sampled_from([ALLOW, DENY]),
)
patterns = st.builds(
    Pattern, st.just(TOPIC), names, st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED])
)


@settings(max_examples=examples(200), deadline=None)
@given(
    rules=st.lists(st.builds(AclBinding, patterns, entries), max_size=8),
    operation=st.sampled_from([Operation.READ, Operation.WRITE, Operation.DESCRIBE]),
    name=st.sampled_from(["a", "ab", "abc", "b", "c"]),
)
def test_se_4_an_explanation_is_the_decision(
    rules: list[AclBinding], operation: Operation, name: str
) -> None:
    """Two ways to the same: masks of bits by pattern, and a look at one rule after the other."""
    question = Question("User:alice", "127.0.0.1", operation, TOPIC, name)
    assert explained(question, rules).is_allowed == AclRules.of(rules).allows(*question)
