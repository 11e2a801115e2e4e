"""AlterUserScramCredentials: who can log in from then on, and who cannot any more."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from barnabas import Broker, Cluster
from barnabas.client import (
    SyncAdmin,
    SyncProducer,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from barnabas.errors import (
    ClusterAuthorizationFailed,
    DuplicateResource,
    NotController,
    ResourceNotFound,
    SaslAuthenticationFailed,
    UnacceptableCredential,
)
from barnabas.protocol.api import ALTER_USER_SCRAM_CREDENTIALS
from barnabas.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
)
from tests.kit.raw_client import RawClient

SETTINGS = {
    "listeners": "OPEN://127.0.0.1:0,IN://127.0.0.1:0",
    "listener.security.protocol.map": "OPEN:PLAINTEXT,IN:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
    "connection.failed.authentication.delay.ms": "0",
}
SECRET = "planted-secret-1"


@pytest.fixture(scope="module")
def secured() -> Iterator[Broker]:
    with Broker(config=SETTINGS) as broker:
        yield broker


@pytest.fixture
def admin(secured: Broker) -> Iterator[SyncAdmin]:
    with SyncAdmin(secured.bootstrap_servers) as one:
        yield one


def logs_in(secured: Broker, user: str, mechanism: str, password: str = SECRET) -> bool:
    options: dict[str, Any] = {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": user,
        "sasl_plain_password": password,
    }
    (port,) = (each.port for each in secured.server.listeners if each.name == "IN")
    try:
        with SyncProducer(f"127.0.0.1:{port}", **options) as producer:
            producer.partitions_for("t")
    except SaslAuthenticationFailed:
        return False
    return True


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_se_3_a_user_logs_in_from_the_answer_on_and_until_the_deletion(
    secured: Broker, admin: SyncAdmin, mechanism: str
) -> None:
    user = f"user of {mechanism}, a=b"
    assert not logs_in(secured, user, mechanism)
    admin.alter_user_scram_credentials(
        UserScramCredentialUpsertion(user, SECRET, mechanism, iterations=5000)
    )
    assert logs_in(secured, user, mechanism)
    assert not logs_in(secured, user, mechanism, "wrong")
    assert admin.describe_user_scram_credentials(user) == {user: {mechanism: 5000}}
    admin.alter_user_scram_credentials([UserScramCredentialUpsertion(user, "new", mechanism)])
    assert not logs_in(secured, user, mechanism)
    assert logs_in(secured, user, mechanism, "new")
    admin.alter_user_scram_credentials(UserScramCredentialDeletion(user, mechanism))
    assert not logs_in(secured, user, mechanism, "new")
    with pytest.raises(ResourceNotFound):
        admin.alter_user_scram_credentials(UserScramCredentialDeletion(user, mechanism))


def test_se_3_what_is_wrong_with_one_user_does_not_stop_another(
    secured: Broker, admin: SyncAdmin
) -> None:
    with pytest.raises(UnacceptableCredential, match="Too few iterations"):
        admin.alter_user_scram_credentials(
            [
                UserScramCredentialUpsertion("carol", SECRET, iterations=1),
                UserScramCredentialUpsertion("dave", SECRET),
            ]
        )
    assert logs_in(secured, "dave", "SCRAM-SHA-256")
    twice = [UserScramCredentialUpsertion("carol", each) for each in ("a", "b")]
    with pytest.raises(DuplicateResource):
        admin.alter_user_scram_credentials(twice)


@pytest.mark.parametrize(
    ("alteration", "error"),
    [
        (UserScramCredentialUpsertion("u", ""), ValueError),
        (UserScramCredentialUpsertion("u", SECRET, "PLAIN"), ValueError),
        (UserScramCredentialUpsertion("u", SECRET, iterations=16385), ValueError),
        (UserScramCredentialUpsertion("", SECRET), UnacceptableCredential),
        (("u", SECRET), TypeError),
    ],
)
def test_se_3_impossible_alterations_are_refused_and_show_no_password(
    admin: SyncAdmin, alteration: Any, error: type[Exception]
) -> None:
    with pytest.raises(error) as raised:
        admin.alter_user_scram_credentials([alteration])
    assert SECRET not in f"{raised.value}"
    if not isinstance(alteration, tuple) or hasattr(alteration, "user"):
        assert SECRET not in repr(alteration)


def request() -> AlterUserScramCredentialsRequest:
    return AlterUserScramCredentialsRequest(
        deletions=[ScramCredentialDeletion(name="alice", mechanism=1)]
    )


def test_se_3_only_the_controller_alters_and_the_client_finds_it() -> None:
    with Cluster(2) as cluster:
        codes = set()
        for servers in cluster.bootstrap_servers.split(","):
            with RawClient(servers) as client:
                answer = client.call(ALTER_USER_SCRAM_CREDENTIALS, 0, request())
            codes |= {(each.user, each.error_code) for each in answer.results}
        assert codes == {("alice", NotController.code), ("alice", ResourceNotFound.code)}
        with SyncAdmin(cluster.bootstrap_servers) as admin:
            admin.alter_user_scram_credentials(UserScramCredentialUpsertion("alice", SECRET))
            assert admin.describe_user_scram_credentials() == {"alice": {"SCRAM-SHA-256": 4096}}


def test_se_3_only_who_may_alter_the_cluster_alters(client: RawClient, deny: Any) -> None:
    deny("kafka-cluster")
    answer = client.call(ALTER_USER_SCRAM_CREDENTIALS, 0, request())
    assert answer.results[0].error_code == ClusterAuthorizationFailed.code
