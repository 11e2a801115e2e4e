"""Defines Kafka's security options for clients. The names have underscores."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

from barnabas.errors import ConfigError
from barnabas.security.protocol import SecurityProtocol

if TYPE_CHECKING:
    from barnabas.security.tls_settings import TlsSettings

_BROKERS_CRL = "barnabas.ssl.crl.location"  # defined here to avoid loading TLS modules
_SECRET = ("password", "jaas", "keystore_key", "secret")


class SecurityConfig(NamedTuple):
    """The security options that every client has. An option is not set if it is empty text."""

    security_protocol: str = "PLAINTEXT"
    sasl_mechanism: str = "GSSAPI"
    sasl_jaas_config: str = ""
    sasl_plain_username: str = ""
    sasl_plain_password: str = ""
    sasl_oauth_token_provider: Any = None  # see `security.login`
    sasl_oauthbearer_token_endpoint_url: str = ""
    sasl_login_refresh_window_factor: float = 0.8
    sasl_login_refresh_window_jitter: float = 0.05
    sasl_login_refresh_min_period_seconds: int = 60
    sasl_login_refresh_buffer_seconds: int = 300
    # TLS options.
    ssl_truststore_type: str = "JKS"
    ssl_truststore_location: str = ""
    ssl_truststore_password: str = ""
    ssl_truststore_certificates: str = ""  # PEM
    ssl_keystore_type: str = "JKS"
    ssl_keystore_location: str = ""
    ssl_keystore_password: str = ""
    ssl_keystore_key: str = ""  # PEM
    ssl_keystore_certificate_chain: str = ""  # PEM
    ssl_key_password: str = ""
    ssl_endpoint_identification_algorithm: str = "https"
    ssl_enabled_protocols: str = "TLSv1.2,TLSv1.3"
    ssl_protocol: str = "TLSv1.3"
    ssl_cipher_suites: str = ""
    ssl_crl_location: str = ""

    @classmethod
    def of_listener(
        cls, protocol: SecurityProtocol, value_of: Callable[[str], Any]
    ) -> SecurityConfig:
        """Return options for connections to other brokers, from broker listener settings."""
        given: dict[str, Any] = {}
        for name in cls._fields:
            if name.startswith("ssl_"):
                # The broker's option has our prefix, because Kafka has no option for revoked
                # certificates.
                own = name == "ssl_crl_location"
                value = value_of(_BROKERS_CRL if own else name.replace("_", "."))
                text = ",".join(value) if isinstance(value, list) else value
                given[name] = "" if text is None else str(text)
        return cls(**{**given, "security_protocol": protocol.value})

    @property
    def protocol(self) -> SecurityProtocol:
        return SecurityProtocol(self.security_protocol)

    def check(self) -> None:
        """Raise ConfigError if the options are inconsistent."""
        if self.protocol.uses_sasl:
            # This is not imported at the top, because clients without SASL do not need it.
            from barnabas.client.security.login import check_login

            check_login(self)
            return
        # SASL options without SASL are an error, because the user believes that the client
        # authenticates.
        for name, value in zip(self._fields, self, strict=True):
            is_tuning = name.startswith("sasl_login_refresh_")
            if name.startswith("sasl_") and not is_tuning and value != self._field_defaults[name]:
                raise ConfigError(
                    f"{name.replace('_', '.')} is set, but security.protocol is "
                    f"{self.security_protocol}, which has no authentication; set it to SASL_SSL or "
                    "SASL_PLAINTEXT, or remove the option"
                )

    def tls_settings(self) -> TlsSettings:
        """Return the TLS options. Raises ConfigError if an option is invalid."""
        from barnabas.security.tls_settings import TlsSettings

        own = {name.removeprefix("ssl_"): value for name, value in self._asdict().items()}
        fields = (name for name in TlsSettings._fields if name in own)
        return TlsSettings(**{name: own[name] for name in fields})

    def __repr__(self) -> str:
        """Return the options as text for logs, without any secrets."""
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
    sasl_oauthbearer_token_endpoint_url: str
    sasl_login_refresh_window_factor: float
    sasl_login_refresh_window_jitter: float
    sasl_login_refresh_min_period_seconds: int
    sasl_login_refresh_buffer_seconds: int
    # TLS options.
    ssl_truststore_type: str
    ssl_truststore_location: str
    ssl_truststore_password: str
    ssl_truststore_certificates: str
    ssl_keystore_type: str
    ssl_keystore_location: str
    ssl_keystore_password: str
    ssl_keystore_key: str
    ssl_keystore_certificate_chain: str
    ssl_key_password: str
    ssl_endpoint_identification_algorithm: str
    ssl_enabled_protocols: str
    ssl_protocol: str
    ssl_cipher_suites: str
    ssl_crl_location: str


def is_secret(name: str) -> bool:
    """Return whether the value of an option is secret."""
    return any(word in name for word in _SECRET)
