"""DescribeUserScramCredentials: mechanisms and iterations, and never a secret."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas import Broker
from barnabas.client import SyncAdmin, UserScramCredentialUpsertion
from barnabas.errors import ClusterAuthorizationFailed, DuplicateResource, ResourceNotFound
from barnabas.protocol.api import DESCRIBE_USER_SCRAM_CREDENTIALS
from barnabas.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from tests.kit.raw_client import RawClient


@pytest.fixture(autouse=True, scope="module")
def users(node: Broker) -> None:
    with SyncAdmin(node.bootstrap_servers) as admin:
        admin.alter_user_scram_credentials(
            [
                UserScramCredentialUpsertion("alice", "planted-secret-1"),
                UserScramCredentialUpsertion("alice", "planted-secret-1", "SCRAM-SHA-512", 8192),
                UserScramCredentialUpsertion("bob", "planted-secret-1"),
            ]
        )


def described(client: RawClient, *names: str) -> Any:
    wanted = DescribeUserScramCredentialsRequest(users=[UserName(name=name) for name in names])
    answer = client.call(DESCRIBE_USER_SCRAM_CREDENTIALS, 0, wanted)
    assert answer.error_code == 0
    return answer.results


def test_se_3_all_users_are_described_if_none_is_named(client: RawClient, node: Broker) -> None:
    for names in (None, []):
        answer = client.call(
            DESCRIBE_USER_SCRAM_CREDENTIALS, 0, DescribeUserScramCredentialsRequest(users=names)
        )
        assert [each.user for each in answer.results] == ["alice", "bob"]
    with SyncAdmin(node.bootstrap_servers) as admin:
        assert admin.describe_user_scram_credentials() == {
            "alice": {"SCRAM-SHA-256": 4096, "SCRAM-SHA-512": 8192},
            "bob": {"SCRAM-SHA-256": 4096},
        }
        assert admin.describe_user_scram_credentials([]) == {}


def test_se_3_each_user_has_an_error_of_its_own(client: RawClient) -> None:
    found = {each.user: each for each in described(client, "bob", "carol", "alice", "alice", "")}
    assert found["bob"].error_code == 0
    assert found["alice"].error_code == DuplicateResource.code
    assert found["carol"].error_code == ResourceNotFound.code
    assert found["carol"].error_message == (
        "Attempt to describe a user credential that does not exist: carol"
    )
    assert found[""].error_message == "Username must not be empty"


def test_se_3_only_who_may_describe_the_cluster_is_answered(client: RawClient, deny: Any) -> None:
    deny("kafka-cluster")
    wanted = DescribeUserScramCredentialsRequest(users=None)
    answer = client.call(DESCRIBE_USER_SCRAM_CREDENTIALS, 0, wanted)
    assert (answer.error_code, answer.results) == (ClusterAuthorizationFailed.code, [])


def test_se_4_the_error_is_repeated_for_each_user_that_is_named(
    client: RawClient, deny: Any
) -> None:
    deny("kafka-cluster")
    wanted = DescribeUserScramCredentialsRequest(users=[UserName(name="a"), UserName(name="b")])
    answer = client.call(DESCRIBE_USER_SCRAM_CREDENTIALS, 0, wanted)
    assert [(each.user, each.error_code) for each in answer.results] == [
        ("", ClusterAuthorizationFailed.code)
    ] * 2
