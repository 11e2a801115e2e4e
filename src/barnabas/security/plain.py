"""Implements SASL PLAIN (RFC 4616).

The user and the password are sent in a single message, so PLAIN should be used only over TLS or in
a private network.

authzid NUL user NUL password
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from hmac import compare_digest

from barnabas.errors import SaslAuthenticationFailed
from barnabas.security.acl import Principal
from barnabas.security.sasl import Identity, InvalidCredentials


class PlainServer:
    """The server's side. Checking an unknown user takes as long as checking a wrong password."""

    def __init__(self, passwords: Mapping[str, str]) -> None:
        """Create the server's side. `passwords` maps users to their passwords."""
        self._passwords = passwords
        self.identity: Identity | None = None
        self.known_user = ""

    def respond(self, message: bytes) -> bytes:
        try:
            parts = message.decode().split("\0")
        except UnicodeDecodeError:
            raise InvalidCredentials("the PLAIN message is not UTF-8") from None
        if len(parts) != 3:
            raise InvalidCredentials(
                f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}"
            )
        authorization_id, user, password = parts
        if not user:
            raise SaslAuthenticationFailed("Authentication failed: username not specified")
        if not password:
            raise SaslAuthenticationFailed("Authentication failed: password not specified")
        known = self._passwords.get(user)
        self.known_user = "" if known is None else user
        # Compare digests, because comparing the passwords would reveal the length of the password.
        is_right = compare_digest(_digest(password), _digest(known or ""))
        if known is None or not is_right:
            raise SaslAuthenticationFailed("Authentication failed: Invalid username or password")
        # As in Kafka, a client cannot act on behalf of another user.
        if authorization_id not in ("", user):
            raise SaslAuthenticationFailed(
                "Authentication failed: Client requested an authorization id that is different "
                "from username"
            )
        self.identity = Identity(Principal("User", user))
        return b""


class PlainClient:
    """The client's side."""

    def __init__(self, user: str, password: str) -> None:
        self._message = f"\0{user}\0{password}".encode()

    def first(self) -> bytes:
        return self._message

    def respond(self, challenge: bytes) -> bytes | None:
        if challenge:
            raise InvalidCredentials("the broker answered PLAIN credentials with a challenge")
        return None


def _digest(text: str) -> bytes:
    return sha256(text.encode("utf-8", "surrogatepass")).digest()
