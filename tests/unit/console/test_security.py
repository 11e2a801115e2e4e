"""IN-6: the rules, the users, and which requests can be explained."""

from __future__ import annotations

import pytest

from barnabas.cli.acls.text import explanation_lines
from barnabas.console.problem import WebProblem
from barnabas.console.query import paging
from barnabas.console.security import (
    SORTS,
    access_of,
    explanation,
    rules_about,
    security_page,
    why_hidden,
)
from barnabas.console.shapes import Security
from barnabas.errors import ClusterAuthorizationFailed, SecurityDisabled
from barnabas.security.acl import Operation, ResourceType
from barnabas.security.acl_binding import (
    AclBinding,
    AclEntry,
    Pattern,
    PatternType,
    PermissionType,
)
from barnabas.security.acl_explanation import Access, explain

ALLOW, DENY = PermissionType.ALLOW, PermissionType.DENY
ORDERS = Pattern(ResourceType.TOPIC, "orders")
WRITES = AclBinding(ORDERS, AclEntry("User:alice", "*", Operation.WRITE, ALLOW))
DENIED = AclBinding(
    Pattern(ResourceType.TOPIC, "ord", PatternType.PREFIXED),
    AclEntry("User:*", "10.0.0.7", Operation.ALL, DENY),
)
GROUP = AclBinding(
    Pattern(ResourceType.GROUP, "readers"), AclEntry("User:bob", "*", Operation.READ, ALLOW)
)
RULES = [WRITES, DENIED, GROUP]
USERS = {"bob": {"SCRAM-SHA-512": 4096, "SCRAM-SHA-256": 4096}, "alice": {"SCRAM-SHA-512": 4096}}


def page(**query: str) -> Security:
    return security_page(RULES, USERS, paging(query, SORTS), "")


def test_rules_are_shown_by_principal_and_by_resource() -> None:
    by_principal = [row["principal"] for row in page()["acls"]]
    assert by_principal == ["User:*", "User:alice", "User:bob"]
    by_resource = [(row["resource_type"], row["resource"]) for row in page(sort="resource")["acls"]]
    assert by_resource == [("Group", "readers"), ("Topic", "ord"), ("Topic", "orders")]
    backwards = page(sort="resource", descending="1")["acls"]
    assert [row["resource"] for row in backwards] == ["orders", "ord", "readers"]


def test_a_search_finds_principals_resources_and_users() -> None:
    assert [row["principal"] for row in page(search="ORD")["acls"]] == ["User:*", "User:alice"]
    of_bob = page(search="User:bob")
    assert [row["resource"] for row in of_bob["acls"]] == ["readers"]
    assert [user["name"] for user in of_bob["users"]] == ["bob"]
    assert page(search="nobody")["matching"] == 0


def test_users_have_names_and_mechanisms_only() -> None:
    assert page()["users"] == [
        {"name": "alice", "mechanisms": ["SCRAM-SHA-512"]},
        {"name": "bob", "mechanisms": ["SCRAM-SHA-256", "SCRAM-SHA-512"]},
    ]


def test_a_page_is_limited() -> None:
    many = [WRITES._replace(pattern=Pattern(ResourceType.TOPIC, f"t{n:04}")) for n in range(250)]
    users = {f"u{n:04}": ["SCRAM-SHA-512"] for n in range(600)}
    last = security_page(many, users, paging({"page": "2"}, SORTS), "")
    assert (len(last["acls"]), last["matching"], last["acls"][0]["resource"]) == (50, 250, "t0200")
    assert (len(last["users"]), last["users_matching"]) == (500, 600)


@pytest.mark.parametrize("host", ["", "10.0.0.7"])
def test_the_console_and_the_command_explain_alike(host: str) -> None:
    query = {"principal": "alice", "operation": "Write", "name": "orders", "host": host}
    access = access_of({**query, "type": "Topic"})
    assert access == Access("User:alice", Operation.WRITE, ORDERS, host or "*")
    found = explanation(access, RULES)
    of_command = explain(access, RULES)
    assert found["lines"] == explanation_lines(access, of_command)
    assert found["allowed"] is of_command.is_allowed is (not host)
    assert found["rule"] is not None
    assert found["rule"]["principal"] == ("User:*" if host else "User:alice")
    assert [each for each in RULES if rules_about(access).matches(each)] == [WRITES, DENIED]


def test_a_request_for_the_cluster_needs_no_name() -> None:
    access = access_of({"principal": "Group:x:y", "type": "Cluster", "operation": "AlterConfigs"})
    assert access.principal == "Group:x:y"
    assert access.resource == Pattern(ResourceType.CLUSTER, "kafka-cluster")
    assert explanation(access, RULES)["allowed"] is None


@pytest.mark.parametrize(
    ("changed", "part"),
    [
        ({"principal": ""}, "principal: name a user"),
        ({"name": ""}, "name: name the Topic"),
        ({"operation": "Clusteraction"}, "operation=Clusteraction: give one of Read, Write"),
        ({"type": "Any"}, "type=Any: give one of Topic, Group"),
        ({"host": "10.0.0.0/8"}, "host=10.0.0.0/8: give the address of one client"),
        ({"principal": "x" * 300}, "principal: at most 256 characters"),
    ],
)
def test_what_cannot_be_explained_is_named(changed: dict[str, str], part: str) -> None:
    query = {"principal": "alice", "operation": "Read", "type": "Topic", "name": "orders"}
    with pytest.raises(WebProblem) as raised:
        access_of(query | changed)
    assert (raised.value.status, part in str(raised.value)) == (400, True)


def test_hidden_rules_have_a_reason_in_words() -> None:
    assert "lacks the permission Describe on the cluster" in why_hidden(
        ClusterAuthorizationFailed("describing rules")
    )
    assert "the brokers have no authorizer and therefore no rules" in why_hidden(
        SecurityDisabled("No Authorizer is configured.")
    )
