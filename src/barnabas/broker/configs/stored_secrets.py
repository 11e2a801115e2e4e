"""Encrypts the secrets in a broker's dynamic configs. Secrets are held as plain text only in
memory.

    request -> plain settings -> check -> seal -> /config/brokers/<id>
    /config/brokers/<id> -> open -> plain settings -> apply

As in Kafka, a secret that is damaged or was encrypted with another password cannot be read. It is
logged and ignored, but it stays in the tree until it is set again or deleted.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from barnabas.cluster import config_changes, layout
from barnabas.cluster.store import BadVersion, MetadataStore, Set
from barnabas.config.dynamic_keys import is_dynamic_password
from barnabas.errors import ConfigError, CorruptData, InvalidConfig
from barnabas.named_tuple import NamedTuple

if TYPE_CHECKING:
    from barnabas.config import BrokerConfig
    from barnabas.security.password_encoder import PasswordEncoder

_log = logging.getLogger(__name__)

_SECRET: Final = "password.encoder.secret"
_OLD_SECRET: Final = "password.encoder.old.secret"


class Opened(NamedTuple):
    """The settings of a node that could be read, and the reason for each that could not be read."""

    settings: dict[str, str]
    unreadable: dict[str, str]


class StoredSecrets:
    """Encrypts and decrypts a broker's secrets.

    Cryptography is imported only if there are secrets.
    """

    __slots__ = ("_encoder", "_old")

    def __init__(self, config: BrokerConfig) -> None:
        """Raises ConfigError if the `password.encoder.*` settings are invalid."""
        self._encoder = _encoder(config, _SECRET)
        self._old = _encoder(config, _OLD_SECRET)

    def open(self, stored: Mapping[str, str]) -> Opened:
        """Return the settings with all secrets decrypted."""
        settings, unreadable = {}, {}
        for name, text in stored.items():
            if not is_dynamic_password(name):
                settings[name] = text
                continue
            try:
                settings[name] = self._encoder_or_error().decode(text)
            except (ValueError, InvalidConfig) as error:
                unreadable[name] = f"{name} could not be decoded: {error}"
        return Opened(settings, unreadable)

    def seal(
        self, wanted: Mapping[str, str], current: Mapping[str, str], stored: Mapping[str, str]
    ) -> dict[str, str]:
        """Return the settings as they are stored. Secrets that have not changed since `current` are
        not encrypted again.

        Raises InvalidConfig, as Kafka does, if the settings include a secret but no encoder
        password is configured.
        """
        settings = {}
        for name, text in wanted.items():
            if not is_dynamic_password(name):
                settings[name] = text
            # If it were encrypted again with a new salt, the secret would appear to have changed.
            elif current.get(name) == text and name in stored:
                settings[name] = stored[name]
            else:
                settings[name] = self._encoder_or_error().encode(text)
        return settings

    async def renew(self, store: MetadataStore, broker_id: int) -> None:
        """Re-encrypt all secrets that are stored with the old password. Raises MetadataError."""
        path = config_changes.config_path(config_changes.broker_entity(broker_id))
        # As in Kafka, the secrets are re-encrypted if both passwords are set when the broker
        # starts.
        while self._old is not None:
            node = await store.read(path)
            if node is None:
                return
            try:
                stored = layout.decode_config(path, node.data)
            except CorruptData:
                return  # reported by the code that needs the secret
            renewed = {name: self._renew_text(name, text) for name, text in stored.items()}
            if renewed == stored:
                return
            try:
                await store.commit([Set(path, layout.encode_config(renewed), node.version)])
            except BadVersion:
                continue
            _log.info("the passwords of %s have been re-encrypted with the new %s", path, _SECRET)
            return

    def _renew_text(self, name: str, text: str) -> str:
        if self._old is None or not is_dynamic_password(name):
            return text
        try:
            password = self._old.decode(text)
        except ValueError:
            return text  # uses the new password; the old password may still be set at a later start
        return self._encoder_or_error().encode(password)

    def _encoder_or_error(self) -> PasswordEncoder:
        if self._encoder is None:
            raise InvalidConfig("Password encoder secret not configured")
        return self._encoder


async def with_stored_settings(
    config: BrokerConfig, store: MetadataStore, secrets: StoredSecrets, broker_id: int
) -> BrokerConfig:
    """Return the configuration with this broker's stored settings. Needed before its listeners are
    created.

    A keystore password may be stored only in the metadata tree. Unusable settings are ignored here
    and logged later.
    """
    from barnabas.broker.configs.config_rules import usable

    await secrets.renew(store, broker_id)
    found = []
    for entity_id in (broker_id, None):
        path = config_changes.config_path(config_changes.broker_entity(entity_id))
        node = await store.read(path)
        try:
            stored = {} if node is None else layout.decode_config(path, node.data)
        except CorruptData:
            stored = {}
        found.append(usable(secrets.open(stored).settings, is_for_all=entity_id is None))
    try:
        return config.with_dynamic(*found)
    except ConfigError:
        return config


def _encoder(config: BrokerConfig, setting: str) -> PasswordEncoder | None:
    # The table of all keys is large, so it is loaded only if this setting is present.
    secret = config.str(setting) if config.is_set(setting) else ""
    if not secret:
        return None
    # Imported here so that a broker without stored secrets never loads it.
    from barnabas.security.password_encoder import Encryption, PasswordEncoder

    default = Encryption()
    return PasswordEncoder(
        secret,
        Encryption(
            config.str("password.encoder.keyfactory.algorithm") or default.keyfactory_algorithm,
            config.str("password.encoder.cipher.algorithm"),
            config.int("password.encoder.key.length"),
            config.int("password.encoder.iterations"),
        ),
    )
