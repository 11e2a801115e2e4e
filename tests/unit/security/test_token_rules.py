"""Tokens that prove somebody, and all those that do not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from barnabas.security.acl import Principal
from barnabas.security.sasl import InvalidCredentials
from barnabas.security.token_rules import TokenRules, UnknownKey, parse_keys, verify_token
from tests.kit.signed_tokens import (
    NOW_S,
    Signer,
    claims,
    document,
    forged_by_public_key,
    signer,
    unsigned,
)

RULES = TokenRules(audiences=["kafka", "other"], issuer="https://id", clock_skew_ms=30_000)
NOW_MS = NOW_S * 1000


@pytest.fixture(scope="module")
def keys() -> list[Any]:
    return parse_keys(document(signer()))


def verified(keys: list[Any], token: str, rules: TokenRules = RULES) -> str:
    identity = verify_token(token, keys, rules, NOW_MS)
    assert identity.principal.kind == "User"
    return identity.principal.name


@pytest.mark.parametrize("alg", ["RS256", "RS512", "PS256"])
def test_se_3_a_signed_token_proves_its_subject_until_it_ends(keys: list[Any], alg: str) -> None:
    identity = verify_token(signer().sign(claims(), alg), keys, RULES, NOW_MS)
    assert identity.principal == Principal("User", "alice")
    assert identity.expires_at_ms == (NOW_S + 300) * 1000


@pytest.mark.parametrize(
    "changes",
    [
        {"aud": ["x", "other"]},
        {"exp": NOW_S - 29},
        {"iat": NOW_S + 29},
        {"nbf": NOW_S + 29},
        {"scope": "read write"},
        {"scope": ["read", "write"]},
    ],
)
def test_se_3_what_the_rules_allow_passes(keys: list[Any], changes: dict[str, Any]) -> None:
    assert verified(keys, signer().sign(claims(**changes))) == "alice"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"exp": NOW_S - 30}, "expired"),
        ({"exp": None}, "without the times"),
        ({"iat": None}, "without the times"),
        ({"exp": "soon"}, "exp is not a time"),
        ({"exp": True}, "exp is not a time"),
        ({"exp": 2**50}, "exp is not a time"),
        ({"iat": NOW_S + 31}, "in the future"),
        ({"nbf": NOW_S + 31}, "in the future"),
        ({"iss": "https://evil"}, "another issuer"),
        ({"iss": None}, "another issuer"),
        ({"aud": "kafka2"}, "another audience"),
        ({"aud": None}, "another audience"),
        ({"aud": []}, "another audience"),
        ({"sub": None}, "without a subject"),
        ({"sub": "  "}, "without a subject"),
        ({"sub": 7}, "without a subject"),
        ({"scope": 7}, "scope"),
    ],
)
def test_se_3_a_signed_token_that_breaks_a_rule_is_refused(
    keys: list[Any], changes: dict[str, Any], reason: str
) -> None:
    token = signer().sign(claims(**changes))
    with pytest.raises(InvalidCredentials, match=reason) as error:
        verified(keys, token)
    assert token not in str(error.value)


def test_se_3_other_claims_can_name_the_user_and_the_scope(keys: list[Any]) -> None:
    rules = TokenRules(subject_claim="email", scope_claim="roles")
    token = signer().sign(claims(email="alice@example.com", aud=None, iss=None))
    assert verified(keys, token, rules) == "alice@example.com"


def tampered(token: str) -> str:
    head, _, signature = token.split(".")
    return ".".join([head, unsigned(claims(sub="root")).split(".")[1], signature])


FORGED = {
    "alg none": lambda: unsigned(claims()),
    "alg None": lambda: unsigned(claims(), alg="None"),
    "no alg": lambda: unsigned(claims(), alg=None),
    "none, with a signature": lambda: unsigned(claims(), signature="AAAA"),
    "rs256 without a signature": lambda: unsigned(claims(), alg="RS256", kid="k1"),
    "hs256 by the public key": lambda: forged_by_public_key(claims(), signer()),
    "another key of the same name": lambda: Signer("k1").sign(claims()),
    "another payload": lambda: tampered(signer().sign(claims())),
    "a critical header": lambda: signer().sign(claims()).replace("e", "f", 1),
    "two parts": lambda: "a.b",
    "five parts": lambda: "a.b.c.d.e",
    "no json": lambda: "!!!.e30.AAAA",
    "a list": lambda: "W10.e30.AAAA",
    "empty": lambda: "",
    "oversized": lambda: signer().sign(claims(pad="x" * 70_000)),
}


@pytest.mark.parametrize("forgery", FORGED)
def test_se_3_a_forged_token_proves_nothing(keys: list[Any], forgery: str) -> None:
    with pytest.raises(InvalidCredentials):
        verified(keys, FORGED[forgery]())


def test_se_3_a_key_that_is_not_known_is_told_apart(keys: list[Any]) -> None:
    with pytest.raises(UnknownKey):
        verified(keys, signer("k2").sign(claims()))


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"{}",
        b'{"keys": 1}',
        b'{"keys": []}',
        b'{"keys": [{"kty": "oct", "k": "c2VjcmV0"}]}',  # a shared secret verifies nothing
        json.dumps({"keys": [{"kty": "RSA", "use": "enc", "n": "AQAB", "e": "AQAB"}]}).encode(),
    ],
)
def test_se_3_a_document_without_public_keys_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"no|Expecting"):
        parse_keys(text)
