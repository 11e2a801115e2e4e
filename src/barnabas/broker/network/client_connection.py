"""A client's connection as handlers see it: its listener, principal and addresses (SE-1)."""

from __future__ import annotations

from barnabas.security.acl import Principal


class ClientConnection:
    """Shared by the contexts of all requests of one connection."""

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
        """`local_host`: the address of this broker by which the client reached it."""
        self.listener = listener
        self.principal = principal
        self.by_token = False
        """Whether it authenticated by a delegation token, which cannot get others."""
        self.by_mechanism = ""
        """The SASL mechanism by which it authenticated."""
        self.address = address
        self.local_host = local_host
        self.verified_topics: set[str] = set()
        """Topics to which a compressed batch was sent here whose records were all checked."""
