"""Decides which identities a connection has, and whether it may send requests. Pure.

A client gets the identity `digest` with a password of its own choice, and `sasl` by a login with
a user name and a password that the server knows.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from barnabas.zookeeper.access import SUPER, Identity, digest_identity
from barnabas.zookeeper.codes import Code, Refusal
from barnabas.zookeeper.jute import JuteReader, buffer_bytes
from barnabas.zookeeper.settings import LoginSettings

if TYPE_CHECKING:
    from barnabas.zookeeper.digest_md5 import DigestExchange

_log = logging.getLogger(__name__)


class Candidate(Protocol):
    """A connection that may log in."""

    identities: list[Identity]
    host: str
    exchange: DigestExchange | None


class Login:
    """Lets connections prove identities."""

    __slots__ = ("_new_nonce", "_settings")

    def __init__(self, settings: LoginSettings, new_nonce: Callable[[], str]) -> None:
        self._settings = settings
        self._new_nonce = new_nonce

    @property
    def is_required(self) -> bool:
        return bool(self._settings.required_schemes)

    def check(self, candidate: Candidate) -> None:
        """Raise Refusal if the connection lacks the identity that every client needs."""
        schemes = self._settings.required_schemes
        if not any(scheme in schemes for scheme, _ in candidate.identities):
            _log.warning(
                "closed the connection from %s: it has not logged in with %s",
                candidate.host,
                " or ".join(schemes),
            )
            raise Refusal(Code.SESSION_CLOSED_REQUIRES_LOGIN)

    def add_identity(self, candidate: Candidate, reader: JuteReader) -> None:
        """Carry out an AUTH request. Raises Refusal."""
        reader.i32()
        scheme, auth = reader.string(), reader.buffer() or b""
        if scheme == "ip":
            return  # every connection has this identity
        identity = digest_identity(auth) if scheme == "digest" else None
        if identity is None:
            raise Refusal(Code.AUTH_FAILED)
        if identity[1] == self._settings.super_digest:
            _add(candidate, SUPER)
        _add(candidate, identity)

    def respond(self, candidate: Candidate, reader: JuteReader) -> bytes:
        """Carry out a SASL request, and return the body of the response. Raises Refusal."""
        token = reader.buffer() or b""
        if not self._settings.users:
            return buffer_bytes(None)  # like ZooKeeper if there is no JAAS file
        from barnabas.zookeeper.digest_md5 import DigestExchange, LoginFailed

        if candidate.exchange is None:
            candidate.exchange = DigestExchange(self._settings.users, self._new_nonce())
        try:
            answer = candidate.exchange.respond(token)
        except LoginFailed as error:
            _log.warning("login from %s failed: %s", candidate.host, error)
            candidate.exchange = None
            is_required = "sasl" in self._settings.required_schemes
            if self._settings.keeps_failed and not is_required:
                return buffer_bytes(None)
            code = Code.SESSION_CLOSED_REQUIRES_LOGIN if is_required else Code.AUTH_FAILED
            raise Refusal(code) from None
        user = candidate.exchange.user
        if user is not None:
            candidate.exchange = None
            _add(candidate, ("sasl", user))
            if user == self._settings.super_user:
                _add(candidate, SUPER)
        return buffer_bytes(answer)


NO_LOGIN = Login(LoginSettings(), str)
"""For a server without users."""


def _add(candidate: Candidate, identity: Identity) -> None:
    if identity not in candidate.identities:
        candidate.identities.append(identity)
