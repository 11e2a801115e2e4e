"""CreateDelegationToken: who gets a token, and who logs in by it."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.client import SyncAdmin
from barnabas.client.admin.token_admin import DelegationToken
from barnabas.errors import (
    DelegationTokenAuthDisabled,
    DelegationTokenAuthorizationFailed,
    DelegationTokenRequestNotAllowed,
    SaslAuthenticationFailed,
)
from barnabas.protocol.api import CREATE_DELEGATION_TOKEN
from barnabas.protocol.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
)
from tests.kit.broker.secured import Secured, options, secured_broker
from tests.kit.raw_client import RawClient


def by(token: DelegationToken, mechanism: str = "SCRAM-SHA-256") -> dict[str, Any]:
    """The options of a client that logs in by it."""
    return {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_jaas_config": token.jaas_config,
    }


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_se_3_whoever_has_a_token_logs_in_as_its_owner_and_gets_no_other(
    secured: Secured, alice: SyncAdmin, mechanism: str
) -> None:
    token = alice.create_delegation_token(max_lifetime_ms=60_000)
    assert token.owner == "User:alice"
    assert token.max_timestamp_ms == token.issue_timestamp_ms + 60_000
    with SyncAdmin(secured.servers, **by(token, mechanism)) as admin:
        admin.list_topics()
        with pytest.raises(DelegationTokenRequestNotAllowed):
            admin.create_delegation_token()
    assert token.jaas_config.split('"')[3] not in repr(token)
    forged = token._replace(hmac=bytes(64))
    unknown = token._replace(token_id="x")
    for wrong in (forged, unknown):
        with pytest.raises(SaslAuthenticationFailed), SyncAdmin(secured.servers, **by(wrong)) as no:
            no.list_topics()


def test_se_3_a_token_for_another_needs_his_consent(
    secured: Secured, alice: SyncAdmin, deny: Any
) -> None:
    assert alice.create_delegation_token(owner="bob").owner == "User:bob"
    deny("User:bob")
    with pytest.raises(DelegationTokenAuthorizationFailed):
        alice.create_delegation_token(owner="bob")


def test_se_3_nobody_in_particular_gets_no_token(secured: Secured) -> None:
    renewer = CreatableRenewers(principal_type="User", principal_name="bob")
    with RawClient(secured.open_servers) as raw:
        for version in range(CREATE_DELEGATION_TOKEN.max_version + 1):
            request = CreateDelegationTokenRequest(renewers=[renewer], max_lifetime_ms=-1)
            answer = raw.call(CREATE_DELEGATION_TOKEN, version, request)
            assert answer.error_code == DelegationTokenRequestNotAllowed.code
            assert (answer.token_id, bytes(answer.hmac)) == ("", b"")


def test_se_3_without_a_key_there_are_none(tmp_path: Any) -> None:
    with (
        secured_broker(tmp_path) as plain,
        SyncAdmin(plain.servers, **options("PLAIN")) as admin,
        pytest.raises(DelegationTokenAuthDisabled),
    ):
        admin.create_delegation_token()
