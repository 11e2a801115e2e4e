"""DescribeAcls: what a filter matches, and what it does not."""

from __future__ import annotations

import pytest

from barnabas import Broker
from barnabas.client import AclBinding, AclFilter, Operation, PatternType, ResourceType, SyncAdmin
from barnabas.protocol.api import DESCRIBE_ACLS
from barnabas.protocol.messages.describe_acls import DescribeAclsRequest
from tests.kit.broker.acl_brokers import ADMIN, rule
from tests.kit.raw_client import RawClient

TOPIC = ResourceType.TOPIC


def test_se_4_filters_by_each_part() -> None:
    prefixed = rule("or")
    prefixed = AclBinding(
        prefixed.pattern._replace(pattern_type=PatternType.PREFIXED), prefixed.entry
    )
    rules = [rule("orders"), rule("orders", Operation.WRITE), rule("*"), prefixed]
    cases: list[tuple[AclFilter, list[AclBinding]]] = [
        (AclFilter(), rules),
        (AclFilter(TOPIC, "orders", PatternType.LITERAL), rules[:2]),
        (AclFilter(TOPIC, "orders", PatternType.MATCH), rules),
        (AclFilter(TOPIC, "or", PatternType.PREFIXED), [prefixed]),
        (AclFilter(TOPIC, "oranges", PatternType.MATCH), [rules[2], prefixed]),
        (AclFilter(operation=Operation.WRITE), [rules[1]]),
        (AclFilter(principal="User:bob"), []),
        (AclFilter(ResourceType.GROUP), []),
    ]
    with Broker(config=ADMIN) as broker, SyncAdmin(broker.bootstrap_servers) as admin:
        admin.create_acls(rules)
        for wanted, expected in cases:
            assert sorted(admin.describe_acls(wanted)) == sorted(expected), wanted


@pytest.mark.parametrize("code", [99, 127])
def test_a_code_that_is_not_known_matches_nothing(code: int) -> None:
    with Broker(config=ADMIN) as broker:
        with SyncAdmin(broker.bootstrap_servers) as admin:
            admin.create_acls(rule("orders"))
        with RawClient(broker.bootstrap_servers) as client:
            request = DescribeAclsRequest(
                resource_type_filter=code, pattern_type_filter=1, operation=1, permission_type=1
            )
            answer = client.call(DESCRIBE_ACLS, 2, request)
    assert (answer.error_code, answer.resources) == (0, [])
