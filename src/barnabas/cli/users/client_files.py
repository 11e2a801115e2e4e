"""Writes the files that a user needs to connect with our clients, Kafka's or librdkafka's.

    alice.properties              under Kafka's names; only the user may read it
    alice.librdkafka.properties   the same under librdkafka's names (kcat -F, confluent-kafka)
    alice.ca.pem                  the certificates that both trust, which anybody may read

The certificates are copied because the administrator's file is often in a directory that other
users cannot read.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from barnabas.client.admin.scram_admin import UserScramCredentialUpsertion
from barnabas.errors import BarnabasError
from barnabas.security.secret_file import write_secret

_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"
_SECURITY: Final = "security.protocol"
_ENDPOINT: Final = "ssl.endpoint.identification.algorithm"
_TRUST: Final = "ssl.truststore."
_LOCATION: Final = f"{_TRUST}location"
# Settings of keys are left out, because they are the administrator's own secrets.
_COPIED: Final = (_SECURITY, _ENDPOINT, _TRUST, "ssl.enabled.protocols", "ssl.crl.")
_READABLE: Final = 0o644


class PasswordLost(BarnabasError):
    """Raised if the brokers accepted a new password, but its file could not be written."""


class ClientFiles(NamedTuple):
    """Holds a user's files, and the connection settings in them."""

    path: Path
    settings: Mapping[str, str]
    """The administrator's settings that suit every user, under Kafka's names."""
    authority: bytes | None
    """The certificates to trust, if they are in PEM."""

    @property
    def librdkafka_path(self) -> Path:
        return self.path.with_name(f"{self.path.stem}.librdkafka{self.path.suffix}")

    @property
    def authority_path(self) -> Path:
        return self.path.absolute().with_name(f"{self.path.stem}.ca.pem")

    def write(self, wanted: UserScramCredentialUpsertion) -> str:
        """Write all files, and return a line about the purpose of each one. Raises PasswordLost."""
        try:
            if self.authority is not None:
                self.authority_path.write_bytes(self.authority)
                # Certificates are public, so other users' programs may also use this file.
                self.authority_path.chmod(_READABLE)
            write_secret(self.path, _lines(self._kafka_settings(wanted), escaped=True))
            write_secret(
                self.librdkafka_path, _lines(self._librdkafka_settings(wanted), escaped=False)
            )
        except OSError as error:
            raise PasswordLost(
                f"the brokers have the password of user {wanted.user}, but "
                f"{error.filename or self.path} cannot be written: {error.strerror}; "
                f"`barnabas users rotate {wanted.user}` generates another password"
            ) from error
        named = "" if self.authority is None else f"; both refer to {self.authority_path}"
        return (
            f"{self.path} has the settings for a client, {self.librdkafka_path} those for kcat and "
            f"confluent-kafka{named}."
        )

    def _kafka_settings(self, wanted: UserScramCredentialUpsertion) -> dict[str, str]:
        settings = dict(self.settings)
        if self.authority is not None:
            settings[_LOCATION] = str(self.authority_path)
        settings["sasl.mechanism"] = wanted.mechanism
        settings["sasl.jaas.config"] = (
            f'{_MODULE} required username="{_quote(wanted.user)}" '
            f'password="{_quote(wanted.password)}";'
        )
        return settings

    def _librdkafka_settings(self, wanted: UserScramCredentialUpsertion) -> dict[str, str]:
        settings = {
            name: value for name, value in self.settings.items() if not name.startswith("ssl.")
        }
        if _ENDPOINT in self.settings:  # empty in Kafka, a word in librdkafka
            settings[_ENDPOINT] = self.settings[_ENDPOINT] or "none"
        if self.authority is not None:
            settings["ssl.ca.location"] = str(self.authority_path)
        settings["sasl.mechanism"] = wanted.mechanism
        settings["sasl.username"] = wanted.user
        settings["sasl.password"] = wanted.password
        return settings


def client_files(path: Path, servers: str, options: Mapping[str, Any]) -> ClientFiles:
    """Return the files to write at this path for a user of the brokers in `options`. Raises OSError
    if the administrator's authority cannot be read.
    """
    given = {name.replace("_", "."): str(value) for name, value in options.items()}
    settings = {"bootstrap.servers": servers}
    settings |= {name: value for name, value in given.items() if name.startswith(_COPIED)}
    authority = None
    # librdkafka reads only PEM, so a Java truststore is left to Java clients.
    if _LOCATION in settings and settings.get(f"{_TRUST}type", "").upper() == "PEM":
        authority = Path(settings[_LOCATION]).read_bytes()
    return ClientFiles(path, settings, authority)


def _lines(settings: Mapping[str, str], *, escaped: bool) -> bytes:
    """Format properties. Backslashes are doubled only in Kafka's format."""
    text = "".join(f"{name}={value}\n" for name, value in settings.items())
    return (text.replace("\\", "\\\\") if escaped else text).encode()


def _quote(text: str) -> str:
    """Escape text for the quotes in a JAAS line."""
    return text.replace("\\", "\\\\").replace('"', '\\"')
