"""Reads the TLS settings of a server or a client.

The names are derived from Kafka's: `ssl.keystore.type` becomes `keystore_type`."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

BROKERS_CRL_LOCATION = "barnabas.ssl.crl.location"
"""The name of the broker setting for `crl_location`. Kafka does not have this setting."""

CLIENTS_CRL_LOCATION = "ssl.crl.location"
"""The name of the client setting for `crl_location`. librdkafka has the same setting."""

_SECRETS = frozenset({"key_password", "keystore_key", "keystore_password", "truststore_password"})


class TlsSettings(NamedTuple):
    """The settings as text.

    A setting that is missing is empty, and the items of a list are separated by commas.
    """

    keystore_type: str = "JKS"
    keystore_location: str = ""
    keystore_password: str = ""
    keystore_key: str = ""  # this setting and the next two are PEM
    keystore_certificate_chain: str = ""
    key_password: str = ""
    truststore_type: str = "JKS"
    truststore_location: str = ""
    truststore_password: str = ""
    truststore_certificates: str = ""
    enabled_protocols: str = "TLSv1.2,TLSv1.3"
    protocol: str = "TLSv1.3"
    cipher_suites: str = ""
    endpoint_identification_algorithm: str = "https"
    client_auth: str = "none"  # only for servers
    crl_location: str = ""  # lists of revoked certificates

    @classmethod
    def read(cls, value_of: Callable[[str], str]) -> TlsSettings:
        """Read a broker's settings: Kafka's, whose names start with `ssl.`, and our own."""
        kafkas = (field for field in cls._fields if field != "crl_location")
        return cls(
            **{field: value_of(f"ssl.{field.replace('_', '.')}") for field in kafkas},
            crl_location=value_of(BROKERS_CRL_LOCATION),
        )

    @property
    def files(self) -> tuple[str, ...]:
        """Return the configured files. For a directory, all files in it are returned."""
        own = (self.keystore_location, self.truststore_location, self.crl_location)
        return tuple(filter(None, own))

    def __repr__(self) -> str:
        """Return the settings without secrets, so that they can be logged."""
        shown = ", ".join(
            f"{name}={'[hidden]' if name in _SECRETS else repr(value)}"
            for name, value in zip(self._fields, self, strict=True)
            if value != self._field_defaults[name]
        )
        return f"TlsSettings({shown})"
