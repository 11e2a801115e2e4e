"""SE-6: which settings are encrypted in the tree, and who renews them."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.broker.configs.stored_secrets import StoredSecrets, with_stored_settings
from barnabas.cluster.embedded import EmbeddedStore
from barnabas.cluster.layout import decode_config, encode_config
from barnabas.cluster.store import Create, MetadataStore
from barnabas.config import BrokerConfig
from barnabas.errors import InvalidConfig
from barnabas.security.password_encoder import PasswordEncoder

PLANTED = "planted-secret-6"
NAME = "listener.name.in.plain.sasl.jaas.config"
ENTITY = "/config/brokers/0"


def configured(**settings: str) -> BrokerConfig:
    named = {f"password.encoder.{name.replace('_', '.')}": text for name, text in settings.items()}
    return BrokerConfig({"log.dirs": "/d", **named})


def secrets_of(**settings: str) -> StoredSecrets:
    return StoredSecrets(configured(**settings))


def test_se_6_secrets_alone_are_encrypted() -> None:
    """And those that stay are not encrypted again."""
    secrets = secrets_of(secret="s", iterations="2048")
    wanted = {"log.retention.ms": "5", NAME: PLANTED}
    stored = secrets.seal(wanted, {}, {})
    assert stored["log.retention.ms"] == "5"
    assert PLANTED not in stored[NAME] and "iterations:2048" in stored[NAME]
    assert secrets.open(stored).settings == wanted
    again = secrets.seal({**wanted, "log.roll.ms": "7"}, wanted, stored)
    assert again == {**stored, "log.roll.ms": "7"}
    assert secrets.seal({NAME: "x"}, wanted, stored)[NAME] != stored[NAME]


def test_se_6_what_cannot_be_read_says_why() -> None:
    stored = {NAME: PasswordEncoder("other").encode(PLANTED), "log.roll.ms": "7"}
    for secrets in (secrets_of(), secrets_of(secret="s")):
        settings, unreadable = secrets.open(stored)
        assert settings == {"log.roll.ms": "7"}
        assert unreadable[NAME].startswith(f"{NAME} could not be decoded: ")
        assert secrets.seal(stored, stored, stored) == stored
    with pytest.raises(InvalidConfig, match="Password encoder secret not configured"):
        secrets_of().seal({NAME: PLANTED}, {}, {})


def test_se_6_the_old_secret_is_used_once() -> None:
    async def scenario() -> None:
        store: MetadataStore = EmbeddedStore()
        new = configured(secret="new", old_secret="old")
        assert await started(store, new) == {}
        sealed = {NAME: PasswordEncoder("old").encode(PLANTED), "no.such": "1"}
        data = encode_config(sealed)
        await store.commit([Create("/config"), Create("/config/brokers"), Create(ENTITY, data)])
        assert await started(store, new) == {NAME: PLANTED}
        renewed = await stored_in(store)
        assert PasswordEncoder("new").decode(renewed[NAME]) == PLANTED
        assert renewed["no.such"] == "1"
        assert await started(store, new) == {NAME: PLANTED}
        assert await stored_in(store) == renewed

    asyncio.run(scenario())


async def started(store: MetadataStore, config: BrokerConfig) -> dict[str, str]:
    return dict((await with_stored_settings(config, store, StoredSecrets(config), 0)).per_broker)


async def stored_in(store: MetadataStore) -> dict[str, str]:
    node = await store.read(ENTITY)
    assert node is not None
    return decode_config(ENTITY, node.data)
