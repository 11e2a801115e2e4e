"""The TLS settings of one side, under Kafka's names: `ssl.keystore.type` is `keystore_type`."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

_SECRETS = frozenset({"key_password", "keystore_key", "keystore_password", "truststore_password"})


class TlsSettings(NamedTuple):
    """Empty text stands for a setting that is not there; lists are separated by commas."""

    keystore_type: str = "JKS"
    keystore_location: str = ""
    keystore_password: str = ""
    keystore_key: str = ""  # PEM, as the two below
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
    client_auth: str = "none"  # of servers

    @classmethod
    def read(cls, value_of: Callable[[str], str]) -> TlsSettings:
        """From Kafka's names, each with its prefix `ssl.`."""
        return cls(*(value_of(f"ssl.{field.replace('_', '.')}") for field in cls._fields))

    @property
    def files(self) -> tuple[str, ...]:
        """The files that they name."""
        return tuple(filter(None, (self.keystore_location, self.truststore_location)))

    def __repr__(self) -> str:
        """Without secrets, so that it may be logged."""
        shown = ", ".join(
            f"{name}={'[hidden]' if name in _SECRETS else repr(value)}"
            for name, value in zip(self._fields, self, strict=True)
            if value != self._field_defaults[name]
        )
        return f"TlsSettings({shown})"
