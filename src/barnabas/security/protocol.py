"""Kafka's security protocols: whether a connection is encrypted, and whether it authenticates with
SASL.
"""

from __future__ import annotations

from enum import Enum


class SecurityProtocol(Enum):
    """The protocol of a listener, and of the connections to it (SE-2)."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"

    @property
    def uses_tls(self) -> bool:
        return self in (SecurityProtocol.SSL, SecurityProtocol.SASL_SSL)

    @property
    def uses_sasl(self) -> bool:
        return self in (SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL)

    @property
    def is_open(self) -> bool:
        """Return whether a client may connect without proving its identity."""
        return self is SecurityProtocol.PLAINTEXT
