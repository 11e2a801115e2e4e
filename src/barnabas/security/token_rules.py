"""Verifies JSON web tokens: the signature, the issuer, the audience, the times and the scope.

This module is pure.

A token is accepted only if it was signed with a private key: `none` proves nothing, and if HS256
were accepted, anyone could use the public key as the secret and sign tokens. The reasons for a
rejection are meant for the broker's log, and never contain any part of the token.

A token that is valid is accepted until it expires. The provider is not asked whether the token has
been revoked.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from barnabas.errors import ConfigError
from barnabas.extras import install_line
from barnabas.security.acl import Principal
from barnabas.security.sasl import Identity, InvalidCredentials

ALGORITHMS: Final = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA"),
)
_PUBLIC_KINDS: Final = ("RSA", "EC", "OKP")
_MOST_BYTES: Final = 64 * 1024


class UnknownKey(InvalidCredentials, code=58, name="SASL_AUTHENTICATION_FAILED"):
    """Raised if a token was signed with an unknown key. The provider may have added a key."""


class TokenRules(NamedTuple):
    """The claims that are required in a token."""

    audiences: Sequence[str] = ()  # one of these must match; if empty, any audience does
    issuer: str = ""  # if empty, any issuer is accepted
    clock_skew_ms: int = 30_000
    subject_claim: str = "sub"
    scope_claim: str = "scope"


def check_library() -> None:
    """Raise ConfigError if the library for verifying signatures is missing."""
    try:
        import joserfc  # noqa: F401  (an optional dependency, loaded by those who need it)
    except ImportError:
        line = install_line("security", ["joserfc"])
        raise ConfigError(f"sasl.enabled.mechanisms: OAUTHBEARER needs joserfc: {line}") from None


def parse_keys(text: bytes) -> list[Any]:
    """Return the public keys in a JWKS document. Raises ValueError."""
    from joserfc.jwk import JWKRegistry

    document = json.loads(text)
    rows = document["keys"] if isinstance(document, dict) and "keys" in document else None
    if not isinstance(rows, list):
        raise ValueError("it has no `keys` list")
    public = [row for row in rows if isinstance(row, dict) and row.get("kty") in _PUBLIC_KINDS]
    for_signatures = [row for row in public if row.get("use", "sig") == "sig"]
    if not for_signatures:
        raise ValueError("it has no public key for signatures")
    return [JWKRegistry.import_key(row) for row in for_signatures]


def verify_token(token: str, keys: Sequence[Any], rules: TokenRules, now_ms: int) -> Identity:
    """Return the identity that is proved by a token. Raises InvalidCredentials or UnknownKey."""
    if len(token) > _MOST_BYTES:
        raise InvalidCredentials(f"a token of more than {_MOST_BYTES} bytes")
    return _identity(_claims(token, keys), rules, now_ms)


def _claims(token: str, keys: Sequence[Any]) -> Mapping[str, Any]:
    from joserfc import jwt
    from joserfc.errors import JoseError

    header = _header(token)
    # This must be checked before any key is used, because an attacker can choose the header.
    if header.get("alg") not in ALGORITHMS:
        raise InvalidCredentials("a token that is not signed by a private key's algorithm")
    # The key id is optional in RFC 7515. If it is missing, try every key.
    wanted = header.get("kid")
    found = [key for key in keys if wanted is None or key.kid in (None, wanted)]
    for key in found:
        try:
            return dict(jwt.decode(token, key, algorithms=list(ALGORITHMS)).claims)
        except (JoseError, ValueError, TypeError, KeyError):
            continue  # not the right key, or not even the right kind
    if wanted is not None and not found:
        raise UnknownKey("a token signed by an unknown key")
    raise InvalidCredentials("a token with an invalid signature")


def _header(token: str) -> Mapping[str, Any]:
    """Return the header of a token that has not been verified."""
    parts = token.split(".")
    if len(parts) != 3:
        raise InvalidCredentials("a token that is not a signed JSON web token")
    try:
        padded = parts[0] + "=" * (-len(parts[0]) % 4)
        header = json.loads(base64.urlsafe_b64decode(padded))
    except (ValueError, RecursionError):
        raise InvalidCredentials("a token whose header cannot be read") from None
    if not isinstance(header, dict):
        raise InvalidCredentials("a token whose header is not an object")
    return header


def _identity(claims: Mapping[str, Any], rules: TokenRules, now_ms: int) -> Identity:
    skew_ms = rules.clock_skew_ms
    expires_ms = _time_ms(claims, "exp")
    issued_ms = _time_ms(claims, "iat")
    if expires_ms is None or issued_ms is None:
        raise InvalidCredentials("a token without the times exp and iat")
    if expires_ms + skew_ms <= now_ms:
        raise InvalidCredentials("a token that has expired")
    begins_ms = max(issued_ms, _time_ms(claims, "nbf") or issued_ms)
    if begins_ms - skew_ms > now_ms:
        raise InvalidCredentials("a token issued in the future")
    # KIP-768: an issuer or an audience is required only if it is configured.
    if rules.issuer and claims.get("iss") != rules.issuer:
        raise InvalidCredentials("a token from another issuer")
    audience = claims.get("aud")
    audiences = audience if isinstance(audience, list) else [audience]
    if rules.audiences and not any(one in rules.audiences for one in audiences):
        raise InvalidCredentials("a token for another audience")
    scope = claims.get(rules.scope_claim, "")
    if not isinstance(scope, str) and not (
        isinstance(scope, list) and all(isinstance(each, str) for each in scope)
    ):
        raise InvalidCredentials("a token whose scope is neither text nor a list of texts")
    subject = claims.get(rules.subject_claim)
    if not isinstance(subject, str) or not subject.strip():
        raise InvalidCredentials("a token without a subject")
    return Identity(Principal("User", subject.strip()), expires_at_ms=expires_ms)


def _time_ms(claims: Mapping[str, Any], name: str) -> int | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 2**40:
        raise InvalidCredentials(f"a token whose {name} is not a time")
    return int(value * 1000)
