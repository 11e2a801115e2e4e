"""How a client connects: Kafka's security options, with underscores in their names."""

from __future__ import annotations

from typing import NamedTuple, TypedDict

from barnabas.security.protocol import SecurityProtocol

_SECRET = ("password", "jaas", "key", "secret")


class SecurityConfig(NamedTuple):
    """The security options of every client; empty text stands for an option that is not set."""

    security_protocol: str = "PLAINTEXT"

    @property
    def protocol(self) -> SecurityProtocol:
        return SecurityProtocol(self.security_protocol)

    def __repr__(self) -> str:
        """Without secrets, so that it may be logged."""
        shown = ", ".join(
            f"{name}={'[hidden]' if _is_secret(name) else repr(value)}"
            for name, value in zip(self._fields, self, strict=True)
            if value != self._field_defaults[name]
        )
        return f"SecurityConfig({shown})"


class SecurityOptions(TypedDict, total=False):
    security_protocol: str


def _is_secret(name: str) -> bool:
    return any(word in name for word in _SECRET)
