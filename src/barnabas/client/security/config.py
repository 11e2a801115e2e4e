"""How a client connects: Kafka's security options, with underscores in their names."""

from __future__ import annotations

from typing import Any, NamedTuple, TypedDict

from barnabas.errors import ConfigError
from barnabas.security.protocol import SecurityProtocol

_SECRET = ("password", "jaas", "key", "secret")


class SecurityConfig(NamedTuple):
    """The security options of every client; empty text stands for an option that is not set."""

    security_protocol: str = "PLAINTEXT"
    sasl_mechanism: str = "GSSAPI"
    sasl_jaas_config: str = ""
    sasl_plain_username: str = ""
    sasl_plain_password: str = ""
    sasl_oauth_token_provider: Any = None  # see `security.login`

    @property
    def protocol(self) -> SecurityProtocol:
        return SecurityProtocol(self.security_protocol)

    def checked(self) -> SecurityConfig:
        """This, if its options fit together; raises ConfigError."""
        if self.protocol.uses_sasl:
            # Only here, so that a client without log-in loads nothing for it.
            from barnabas.client.security.login import check_login

            check_login(self)
            return self
        for name, value in zip(self._fields, self, strict=True):
            if name.startswith("sasl_") and value != self._field_defaults[name]:
                raise ConfigError(
                    f"{name.replace('_', '.')} is set, and security.protocol is "
                    f"{self.security_protocol}: nobody logs in; set it to SASL_SSL or "
                    "SASL_PLAINTEXT, or remove the option"
                )
        return self

    def __repr__(self) -> str:
        """Without secrets, so that it may be logged."""
        shown = ", ".join(
            f"{name}={'[hidden]' if is_secret(name) else repr(value)}"
            for name, value in zip(self._fields, self, strict=True)
            if value != self._field_defaults[name]
        )
        return f"SecurityConfig({shown})"


class SecurityOptions(TypedDict, total=False):
    security_protocol: str
    sasl_mechanism: str
    sasl_jaas_config: str
    sasl_plain_username: str
    sasl_plain_password: str
    sasl_oauth_token_provider: Any


def is_secret(name: str) -> bool:
    """Whether an option's value must not be shown."""
    return any(word in name for word in _SECRET)
