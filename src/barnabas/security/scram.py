"""Implements SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677).

As in Kafka, there is no channel binding.

    n,,n=alice,r=<client>                               -->
                         <--   r=<client><server>,s=<salt>,i=4096
    c=biws,r=<client><server>,p=<proof>                 -->
                         <--   v=<signature of the server>

Passwords are encoded as UTF-8. SASLprep is not applied, because Kafka does not apply it either;
users created with Kafka's tools can therefore authenticate here, and vice versa. If the extension
`tokenauth=true` is sent, the exchange proves a delegation token instead (KIP-48): the token's id is
the user, and its HMAC is the password.

The server does not store the password, and the client does not send it. Instead, each side proves
that it knows keys derived from the password. Anyone who intercepts an exchange can still try a list
of passwords against it, so without TLS, only long passwords are safe.
"""

from __future__ import annotations

import re
import secrets
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Callable
from hashlib import new as new_hash
from hashlib import pbkdf2_hmac
from hmac import compare_digest
from hmac import digest as hmac_digest
from typing import Final, NamedTuple

from barnabas.errors import CorruptData, SaslAuthenticationFailed
from barnabas.security.acl import Principal
from barnabas.security.sasl import SCRAM_SHA_256, SCRAM_SHA_512, Identity, InvalidCredentials

MIN_ITERATIONS: Final = 4096
MAX_ITERATIONS: Final = 16_384
"""The maximum number of iterations in a new credential, as in Kafka.

A client has to compute them in each authentication.
"""

_MOST_CLIENT_ITERATIONS: Final = 1_000_000  # takes a second; servers may not ask for more
_SALT_BYTES: Final = 26  # as in Kafka
_HASHES: Final = {SCRAM_SHA_256: "sha256", SCRAM_SHA_512: "sha512"}
_TYPES: Final = {1: SCRAM_SHA_256, 2: SCRAM_SHA_512}

_NAME: Final = r"(?:[^=,\0]|=2C|=3D)+"
_FIRST: Final = re.compile(
    rf"n,(?:a=(?P<authzid>{_NAME}))?,"
    rf"(?P<bare>(?:m=[^,]*,)?n=(?P<user>{_NAME}),r=(?P<nonce>[\x21-\x2b\x2d-\x7e]+)"
    r"(?P<extensions>(?:,[A-Za-z]+=[^,\0]+)*))"
)
_FINAL: Final = re.compile(
    r"(?P<unproved>c=(?P<binding>[A-Za-z0-9+/=]+),r=(?P<nonce>[\x21-\x2b\x2d-\x7e]+)"
    r"(?:,[A-Za-z]+=[^,\0]+)*),p=(?P<proof>[A-Za-z0-9+/=]+)"
)
_CHALLENGE: Final = re.compile(
    r"r=(?P<nonce>[\x21-\x2b\x2d-\x7e]+),s=(?P<salt>[A-Za-z0-9+/=]+),i=(?P<iterations>[0-9]{1,10})"
    r"(?:,[A-Za-z]+=[^,\0]+)*"
)


class ScramCredential(NamedTuple):
    """The keys that a server stores instead of a password.

    The server uses them to verify the password and to prove that it knows the keys.
    """

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __repr__(self) -> str:
        return f"ScramCredential({self.iterations} iterations, hidden)"

    def text(self) -> str:
        """Return the credential as text, in the form that Kafka stores in the metadata tree."""
        return (
            f"salt={_base64(self.salt)},stored_key={_base64(self.stored_key)},"
            f"server_key={_base64(self.server_key)},iterations={self.iterations}"
        )


class ScramUser(NamedTuple):
    """The name that a server looks up: a user name or the id of a delegation token."""

    name: str
    is_token: bool


class ScramAccount(NamedTuple):
    """A user's credential, and the identity that it proves."""

    credential: ScramCredential
    identity: Identity


def mechanism_of(kind: int) -> str | None:
    """Return the mechanism that has this code on the wire, or None."""
    return _TYPES.get(kind)


def kind_of(mechanism: str) -> int:
    """Return a mechanism's code on the wire."""
    return next(kind for kind, name in _TYPES.items() if name == mechanism)


def salted_password(mechanism: str, password: str, salt: bytes, iterations: int) -> bytes:
    """Return the PBKDF2 hash of a password. Computing it takes milliseconds."""
    return pbkdf2_hmac(_HASHES[mechanism], password.encode(), salt, iterations)


def credential_from_salted(
    mechanism: str, salted: bytes, salt: bytes, iterations: int
) -> ScramCredential:
    """Build a credential from a salted password, as sent in AlterUserScramCredentials."""
    name = _HASHES[mechanism]
    stored = _hash(name, hmac_digest(salted, b"Client Key", name))
    return ScramCredential(salt, stored, hmac_digest(salted, b"Server Key", name), iterations)


def new_credential(
    mechanism: str, password: str, iterations: int = MIN_ITERATIONS
) -> ScramCredential:
    """Create a credential for a password, using a new salt."""
    salt = new_salt()
    salted = salted_password(mechanism, password, salt, iterations)
    return credential_from_salted(mechanism, salted, salt, iterations)


def is_of_password(mechanism: str, credential: ScramCredential, password: str) -> bool:
    """Return whether the credential was created from this password."""
    salted = salted_password(mechanism, password, credential.salt, credential.iterations)
    return credential == credential_from_salted(
        mechanism, salted, credential.salt, credential.iterations
    )


def decoy_credential(key: bytes, name: str, iterations: int) -> ScramCredential:
    """Return a credential for an unknown name.

    No password matches it. Its salt is derived from a secret key and is always the same, so that a
    client that asks twice cannot find out that the name is unknown.
    """
    salt = hmac_digest(key, name.encode("utf-8", "surrogatepass"), "sha256")[:_SALT_BYTES]
    # No known key has a hash of zeros, and with SHA-512, even the length is wrong.
    return ScramCredential(salt, bytes(32), bytes(32), iterations)


def new_salt() -> bytes:
    return secrets.token_bytes(_SALT_BYTES)


def parse_credential(mechanism: str, text: str) -> ScramCredential:
    """Parse a credential in Kafka's format. Raises CorruptData, whose message never contains the
    credential.
    """
    parts = dict(part.partition("=")[::2] for part in text.split(","))
    try:
        salt, stored, server = (
            b64decode(parts[name], validate=True) for name in ("salt", "stored_key", "server_key")
        )
        iterations = int(parts["iterations"])
    except (KeyError, ValueError):
        raise CorruptData(f"a {mechanism} credential cannot be read") from None
    size = len(_hash(_HASHES[mechanism], b""))
    if len(stored) != size or len(server) != size or not salt or iterations < MIN_ITERATIONS:
        raise CorruptData(
            f"a {mechanism} credential has keys of {len(stored)} and {len(server)} bytes and "
            f"{iterations} iterations; it must have keys of {size} bytes and at least "
            f"{MIN_ITERATIONS} iterations"
        )
    return ScramCredential(salt, stored, server, iterations)


def asked_user(message: bytes) -> ScramUser | None:
    """Return the user named in the client's first message, or None if this is another message."""
    found = _FIRST.fullmatch(message.decode("utf-8", "replace"))
    return None if found is None else _user(found)


class ScramServer:
    """The server's side of one exchange.

    The responses for an unknown user are the same as for a wrong password, because `decoy` creates
    a credential for the unknown name, which no password matches.
    """

    def __init__(
        self,
        mechanism: str,
        find: Callable[[ScramUser], ScramAccount | None],
        decoy: Callable[[ScramUser], ScramCredential],
    ) -> None:
        self._hash_name = _HASHES[mechanism]
        self._find = find
        self._decoy = decoy
        self._nonce = ""
        self._signed = ""  # the first two messages
        self._credential: ScramCredential | None = None
        self._found: Identity | None = None
        self._is_over = False
        self.identity: Identity | None = None
        self.known_user = ""

    def respond(self, message: bytes) -> bytes:
        if self._is_over:
            raise InvalidCredentials("a message after the end of a SCRAM exchange")
        try:
            text = message.decode()
        except UnicodeDecodeError:
            raise InvalidCredentials("a SCRAM message that is not UTF-8") from None
        if self._credential is None:
            return self._first(text).encode()
        self._is_over = True
        return self._final(text, self._credential).encode()

    def _first(self, text: str) -> str:
        found = _FIRST.fullmatch(text)
        if found is None:
            # This rejects channel binding (p=). It also rejects clients that support it (y),
            # because this server does not offer it.
            raise InvalidCredentials("Invalid SCRAM client first message format")
        wanted = _user(found)
        authorization_id = unescape(found["authzid"] or "")
        if authorization_id not in ("", wanted.name):
            raise SaslAuthenticationFailed(
                "Authentication failed: Client requested an authorization id that is different "
                "from username"
            )
        # RFC 5802, 5.1: if a mandatory extension is not supported, the exchange must fail.
        if found["bare"].startswith("m="):
            raise InvalidCredentials("a SCRAM message with an unknown mandatory extension")
        account = self._find(wanted)
        decoy = self._decoy(wanted)  # done for known users as well, so that the time is the same
        self._credential = credential = decoy if account is None else account.credential
        self._found = None if account is None else account.identity
        self.known_user = "" if account is None else wanted.name
        self._nonce = found["nonce"] + new_nonce()
        challenge = f"r={self._nonce},s={_base64(credential.salt)},i={credential.iterations}"
        self._signed = f"{found['bare']},{challenge}"
        return challenge

    def _final(self, text: str, credential: ScramCredential) -> str:
        found = _FINAL.fullmatch(text)
        if found is None:
            raise InvalidCredentials("Invalid SCRAM client final message format")
        # The two need not be equal, because librdkafka before 2.6.1 adds its own nonce in front
        # once more, which Kafka 3.9 accepts.
        if not found["nonce"].endswith(self._nonce):
            raise InvalidCredentials("Invalid client nonce in the final client message")
        if _unbase64(found["binding"])[:2] != b"n,":
            raise InvalidCredentials("the channel binding differs from the first message")
        signed = f"{self._signed},{found['unproved']}".encode()
        signature = hmac_digest(credential.stored_key, signed, self._hash_name)
        client_key = _xor(_unbase64(found["proof"]), signature)
        is_right = compare_digest(_hash(self._hash_name, client_key), credential.stored_key)
        # An unknown user is rejected only after all of the computations. Rejecting the first
        # message would reveal which users exist.
        if self._found is None or not is_right:
            raise InvalidCredentials("Invalid client credentials")
        self.identity = self._found
        return f"v={_base64(hmac_digest(credential.server_key, signed, self._hash_name))}"


class ScramClient:
    """The client's side of one exchange. It also verifies the server's signature."""

    def __init__(self, mechanism: str, user: str, password: str, *, is_token: bool = False) -> None:
        self._mechanism = mechanism
        self._password = password
        self._nonce = new_nonce()
        extensions = ",tokenauth=true" if is_token else ""
        self._bare = f"n={escape(user)},r={self._nonce}{extensions}"
        self._signature: bytes | None = None

    def first(self) -> bytes:
        return f"n,,{self._bare}".encode()

    def respond(self, challenge: bytes) -> bytes | None:
        text = challenge.decode("utf-8", "replace")
        if self._signature is not None:
            is_right = compare_digest(challenge, b"v=" + b64encode(self._signature))
            if not is_right:
                raise InvalidCredentials("the broker does not know the password: is it genuine?")
            return None
        found = _CHALLENGE.fullmatch(text)
        if found is None:
            raise InvalidCredentials("the broker's SCRAM challenge is malformed")
        nonce, iterations = found["nonce"], int(found["iterations"])
        # If the server adds nothing to the nonce, it could be replaying an earlier exchange.
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise InvalidCredentials("the broker's SCRAM challenge is for another exchange")
        # If there were only a few iterations, a server that pretends to be the broker would get a
        # proof from which the password can easily be guessed.
        if not MIN_ITERATIONS <= iterations <= _MOST_CLIENT_ITERATIONS:
            raise InvalidCredentials(
                f"the broker demands {iterations} iterations; from {MIN_ITERATIONS} to "
                f"{_MOST_CLIENT_ITERATIONS} are accepted"
            )
        salted = salted_password(
            self._mechanism, self._password, _unbase64(found["salt"]), iterations
        )
        name = _HASHES[self._mechanism]
        unproved = f"c=biws,r={nonce}"
        signed = f"{self._bare},{text},{unproved}".encode()
        client_key = hmac_digest(salted, b"Client Key", name)
        proof = _xor(client_key, hmac_digest(_hash(name, client_key), signed, name))
        self._signature = hmac_digest(hmac_digest(salted, b"Server Key", name), signed, name)
        return f"{unproved},p={_base64(proof)}".encode()


def new_nonce() -> str:
    return secrets.token_urlsafe(24)


def escape(name: str) -> str:
    """Escape a user name for use in a SCRAM message."""
    return name.replace("=", "=3D").replace(",", "=2C")


def unescape(name: str) -> str:
    # The order matters, because "=3D2C" is the text "=2C" and not a comma.
    return name.replace("=2C", ",").replace("=3D", "=")


def _user(first: re.Match[str]) -> ScramUser:
    extensions = dict(part.partition("=")[::2] for part in first["extensions"].split(",") if part)
    return ScramUser(unescape(first["user"]), extensions.get("tokenauth", "").lower() == "true")


def principal_of(user: str) -> Principal:
    return Principal("User", user)


def _hash(name: str, data: bytes) -> bytes:
    return new_hash(name, data).digest()


def _xor(one: bytes, other: bytes) -> bytes:
    if len(one) != len(other):
        raise InvalidCredentials("a proof whose length differs from the hash")
    return bytes(a ^ b for a, b in zip(one, other, strict=True))


def _base64(data: bytes) -> str:
    return b64encode(data).decode()


def _unbase64(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except Base64Error:
        raise InvalidCredentials("a SCRAM message with bad base64") from None
