"""What an AlterUserScramCredentials request may want, in Kafka's words."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.broker.security.scram_changes import changes_of
from barnabas.errors import (
    DuplicateResource,
    ResourceNotFound,
    UnacceptableCredential,
    UnsupportedSaslMechanism,
)
from barnabas.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from barnabas.security.sasl import SCRAM_SHA_256, SCRAM_SHA_512
from barnabas.security.scram import parse_credential, salted_password


def upsertion(name: str = "alice", mechanism: int = 1, **changes: Any) -> ScramCredentialUpsertion:
    salted = salted_password(SCRAM_SHA_256, "planted-secret-1", b"salt", 4096)
    fields = {"iterations": 4096, "salt": b"salt", "salted_password": salted, **changes}
    return ScramCredentialUpsertion(name=name, mechanism=mechanism, **fields)


def deletion(name: str = "alice", mechanism: int = 1) -> ScramCredentialDeletion:
    return ScramCredentialDeletion(name=name, mechanism=mechanism)


def request(*wanted: Any) -> AlterUserScramCredentialsRequest:
    return AlterUserScramCredentialsRequest(
        deletions=[each for each in wanted if isinstance(each, ScramCredentialDeletion)],
        upsertions=[each for each in wanted if isinstance(each, ScramCredentialUpsertion)],
    )


def test_se_3_a_change_replaces_and_deletes_and_leaves_quotas_alone() -> None:
    changes, errors = changes_of(request(upsertion(mechanism=2), deletion()))
    assert errors == {}
    quotas = {"producer_byte_rate": "1024"}
    after = changes["alice"].edit({**quotas, SCRAM_SHA_256: "old"})
    credential = after.pop(SCRAM_SHA_512)
    assert after == quotas
    assert parse_credential(SCRAM_SHA_512, credential).salt == b"salt"
    assert credential[5:] not in repr(changes)


def test_se_3_what_is_not_there_cannot_be_deleted() -> None:
    changes, _ = changes_of(request(deletion()))
    with pytest.raises(ResourceNotFound, match="delete a user credential that does not exist"):
        changes["alice"].edit({SCRAM_SHA_512: "another"})


@pytest.mark.parametrize(
    ("wanted", "error", "text"),
    [
        (upsertion(iterations=4095), UnacceptableCredential, "Too few iterations"),
        (upsertion(iterations=16385), UnacceptableCredential, "Too many iterations"),
        (upsertion(salt=b""), UnacceptableCredential, "Salt and salted password must not be empty"),
        (upsertion(salted_password=b""), UnacceptableCredential, "must not be empty"),
        (upsertion(mechanism=0), UnsupportedSaslMechanism, "Unknown SCRAM mechanism"),
        (deletion(mechanism=3), UnsupportedSaslMechanism, "Unknown SCRAM mechanism"),
    ],
)
def test_se_3_a_users_error_stops_that_user_alone(
    wanted: Any, error: type[Exception], text: str
) -> None:
    changes, errors = changes_of(request(wanted, upsertion(mechanism=2), upsertion("bob")))
    assert list(changes) == ["bob"]
    assert isinstance(errors["alice"], error)
    assert text in str(errors["alice"])


def test_se_3_a_credential_is_altered_once_and_a_user_has_a_name() -> None:
    _, errors = changes_of(request(upsertion(), deletion(), upsertion("")))
    assert isinstance(errors["alice"], DuplicateResource)
    assert isinstance(errors[""], UnacceptableCredential)
    assert str(errors[""]) == "Username must not be empty"


@pytest.mark.parametrize("name", ["a\nb", "\x1b[2Ja", "a\u202eb"])
def test_a_user_who_could_never_authenticate_is_not_added_but_can_be_deleted(name: str) -> None:
    changes, errors = changes_of(request(upsertion(name)))
    assert not changes
    assert isinstance(errors[name], UnacceptableCredential)
    assert str(errors[name]) == "Username must not have control characters"
    changes, errors = changes_of(request(deletion(name)))
    assert list(changes) == [name] and not errors
