"""Defines Kafka's security protocols, which determine whether connections are encrypted and whether
clients authenticate with SASL.
"""

from __future__ import annotations

from enum import Enum


class SecurityProtocol(Enum):
    """Lists the protocols of listeners and of the connections to them (SE-2)."""

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
        """Return whether clients may connect without proving their identity."""
        return self is SecurityProtocol.PLAINTEXT
