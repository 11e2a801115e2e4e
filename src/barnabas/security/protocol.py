"""Defines Kafka's security protocols.

They determine whether a connection is encrypted and whether the client authenticates with SASL.
"""

from __future__ import annotations

from enum import Enum


class SecurityProtocol(Enum):
    """Lists the security protocols of listeners and connections (SE-2)."""

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
        """Return whether clients can connect without proving who they are."""
        return self is SecurityProtocol.PLAINTEXT
