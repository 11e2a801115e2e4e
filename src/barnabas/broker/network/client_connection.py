"""Describes a client connection's listener, principal and addresses to the handlers (SE-1)."""

from __future__ import annotations

from barnabas.security.acl import Principal


class ClientConnection:
    """A client connection. The contexts of all requests on the connection refer to this object."""

    __slots__ = (
        "address",
        "by_mechanism",
        "by_token",
        "listener",
        "local_host",
        "principal",
        "verified_topics",
    )

    def __init__(self, listener: str, principal: Principal, address: str, local_host: str) -> None:
        """`local_host` is the address to which the client connected."""
        self.listener = listener
        self.principal = principal
        self.by_token = False
        """True if the client authenticated with a delegation token. Such a client may not create
        tokens.
        """
        self.by_mechanism = ""
        """The SASL mechanism with which the client authenticated."""
        self.address = address
        self.local_host = local_host
        self.verified_topics: set[str] = set()
        """The topics for which the client has sent a compressed batch that passed the full check.
        """
