"""Lets clients log in with SASL's mechanism DIGEST-MD5 (RFC 2831), as ZooKeeper does. Pure.

The response to the client's first message is the challenge. The next message proves that the
client knows the password, and the response proves the same of the server. Nothing is signed or
encrypted afterwards (the only `qop` is `auth`). Newer mechanisms are safer, but ZooKeeper's clients
have no other without Kerberos.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import md5
from hmac import compare_digest

from barnabas.errors import BarnabasError

REALM = "zk-sasl-md5"
_URI = f"zookeeper/{REALM}"
_MOST_BYTES = 4096
_FIELD = re.compile(
    rb'\s*([A-Za-z-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s",]*))\s*(?:,|$)', re.DOTALL
)


class LoginFailed(BarnabasError):
    """Raised if a client has not proved that it knows a password."""


class DigestExchange:
    """The exchange of one login."""

    __slots__ = ("_is_begun", "_nonce", "_users", "user")

    def __init__(self, users: Mapping[str, str], nonce: str) -> None:
        """`nonce`: a random text, which is never used again."""
        self._users = users
        self._nonce = nonce
        self._is_begun = False
        self.user: str | None = None
        """The name of the user, once the client has proved its password."""

    def respond(self, token: bytes) -> bytes:
        """Return the server's next message. Raises LoginFailed."""
        if not self._is_begun:
            self._is_begun = True  # whatever the client's first message contains
            return (
                f'realm="{REALM}",nonce="{self._nonce}",charset=utf-8,algorithm=md5-sess'
            ).encode()
        fields = _fields(token)
        user = fields.get("username", b"").decode(errors="replace")
        password = self._users.get(user)
        if password is None:
            raise LoginFailed(f"{user!r} is not among the users")
        expected = {"realm": REALM, "nonce": self._nonce, "nc": "00000001", "digest-uri": _URI}
        for name, value in expected.items():
            if fields.get(name, b"").decode(errors="replace") != value:
                raise LoginFailed(f"the client's message has another {name} than {value!r}")
        if fields.get("qop", b"auth") != b"auth":
            raise LoginFailed("the client asks for signed or encrypted messages")
        secret = _secret(user, password, fields)
        proof = _digest(secret, fields, b"AUTHENTICATE")
        if not compare_digest(proof, fields.get("response", b"")):
            raise LoginFailed(f"the password of {user!r} is wrong")
        self._nonce = ""  # it has been used
        self.user = user
        return b"rspauth=" + _digest(secret, fields, b"")


def _fields(token: bytes) -> dict[str, bytes]:
    if len(token) > _MOST_BYTES:
        raise LoginFailed(f"the client's message has more than {_MOST_BYTES} bytes")
    fields: dict[str, bytes] = {}
    at = 0
    while at < len(token):
        found = _FIELD.match(token, at)
        if found is None:
            raise LoginFailed("the client's message is malformed")
        name = found[1].decode().lower()
        if name in fields:
            raise LoginFailed(f"the client's message has {name} twice")
        quoted, plain = found[2], found[3]
        fields[name] = (
            plain if quoted is None else re.sub(rb"\\(.)", rb"\1", quoted, flags=re.DOTALL)
        )
        at = found.end()
    return fields


def _secret(user: str, password: str, fields: Mapping[str, bytes]) -> bytes:
    """Return the hexadecimal hash of what RFC 2831 calls A1."""
    whole = b":".join(map(_encoded, (user, REALM, password)))
    parts = [md5(whole, usedforsecurity=False).digest(), fields["nonce"], _cnonce(fields)]
    if "authzid" in fields:
        parts.append(fields["authzid"])
    return _hex(b":".join(parts))


def _digest(secret: bytes, fields: Mapping[str, bytes], method: bytes) -> bytes:
    asked = _hex(method + b":" + fields["digest-uri"])
    return _hex(b":".join((secret, fields["nonce"], fields["nc"], _cnonce(fields), b"auth", asked)))


def _cnonce(fields: Mapping[str, bytes]) -> bytes:
    return fields.get("cnonce", b"")


def _encoded(text: str) -> bytes:
    # RFC 2831: in ISO 8859-1 if possible, although the messages are UTF-8.
    try:
        return text.encode("iso-8859-1")
    except UnicodeEncodeError:
        return text.encode()


def _hex(data: bytes) -> bytes:
    return md5(data, usedforsecurity=False).hexdigest().encode()
