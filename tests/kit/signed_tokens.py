"""JSON web tokens for tests, by keys that are made while they run, and forged ones."""

from __future__ import annotations

import base64
import functools
import json
from typing import Any

NOW_S = 1_700_000_000


class Signer:
    """A private key, and the JWKS document of its public one."""

    def __init__(self, kid: str = "k1") -> None:
        from joserfc.jwk import RSAKey

        self.kid = kid
        self._key = RSAKey.generate_key(2048, {"kid": kid, "use": "sig"})

    @property
    def row(self) -> dict[str, Any]:
        return dict(self._key.as_dict(private=False))

    def sign(self, claims: dict[str, Any], alg: str = "RS256", **header: Any) -> str:
        from joserfc import jwt

        return jwt.encode({"alg": alg, "kid": self.kid, **header}, claims, self._key, [alg])

    def public_pem(self) -> bytes:
        return self._key.as_pem(private=False)


@functools.cache
def signer(kid: str = "k1") -> Signer:
    """One key for all tests: to make one takes a while."""
    return Signer(kid)


def document(*signers: Signer) -> bytes:
    return json.dumps({"keys": [each.row for each in signers]}).encode()


def claims(now_s: int = NOW_S, **changes: Any) -> dict[str, Any]:
    """Claims of alice; None takes one away."""
    plain = {"sub": "alice", "iss": "https://id", "aud": "kafka", "iat": now_s, "exp": now_s + 300}
    return {name: value for name, value in {**plain, **changes}.items() if value is not None}


def unsigned(payload: dict[str, Any], **header: Any) -> str:
    """A token with no signature, or with whatever one is in its header."""
    signature = header.pop("signature", "")
    parts = ({"alg": "none", **header}, payload)
    return ".".join([*(_base64(json.dumps(part).encode()) for part in parts), signature])


def forged_by_public_key(payload: dict[str, Any], of: Signer) -> str:
    """HS256 with the public key as the secret, which a careless verifier accepts."""
    import hashlib
    import hmac

    text = unsigned(payload, alg="HS256", kid=of.kid).rpartition(".")[0]
    digest = hmac.digest(of.public_pem(), text.encode(), hashlib.sha256)
    return f"{text}.{_base64(digest)}"


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
