"""SE-6: secrets by dynamic configs: encrypted in the tree, in force at once, and shown nowhere."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from barnabas import Broker
from barnabas.client import ConfigResource, SyncAdmin
from barnabas.client.admin.configs import BROKER
from barnabas.cluster.embedded import EmbeddedStore
from barnabas.cluster.layout import decode_config
from barnabas.errors import BarnabasError, ConfigError, InvalidConfig, InvalidRequest
from tests.kit.broker.tls_broker import options as tls_options
from tests.kit.broker.tls_broker import secured, tls_address
from tests.kit.certificates import Authority

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
ENCODER = "planted-encoder-secret"
OLD, NEW, KEY_PASSWORD = "planted-password-1", "planted-password-2", "planted-key-password"
JAAS = "listener.name.in.plain.sasl.jaas.config"
THIS = ConfigResource(BROKER, "0")
ENTITY = "/config/brokers/0"


def users(**passwords: str) -> str:
    listed = " ".join(f'user_{name}="{password}"' for name, password in passwords.items())
    return f"{PLAIN} {listed};"


class Running:
    """A broker where clients log in by PLAIN, and one listener where they need not."""

    def __init__(self, broker: Broker) -> None:
        ports = {each.name: each.port for each in broker.server.listeners}
        self.broker = broker
        self.open_servers = f"127.0.0.1:{ports['OPEN']}"
        self.servers = f"127.0.0.1:{ports['IN']}"

    def alter(self, *settings: tuple[str, str]) -> None:
        with SyncAdmin(self.open_servers) as admin:
            admin.alter_configs(THIS, dict(settings))

    def lets_in(self, user: str, password: str) -> bool:
        given: dict[str, Any] = {
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "PLAIN",
            "sasl_plain_username": user,
            "sasl_plain_password": password,
        }
        try:
            SyncAdmin(self.servers, default_api_timeout_ms=5000, **given).close()
        except BarnabasError:
            return False
        return True

    def stored(self) -> dict[str, str]:
        return asyncio.run(self._read(self.broker.server.node.store))

    @staticmethod
    async def _read(store: Any) -> dict[str, str]:
        node = await store.read(ENTITY)
        return {} if node is None else decode_config(ENTITY, node.data)


@contextmanager
def running(directory: Path, **settings: str | None) -> Iterator[Running]:
    config = {
        "listeners": "OPEN://127.0.0.1:0,IN://127.0.0.1:0",
        "listener.security.protocol.map": "OPEN:PLAINTEXT,IN:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "connection.failed.authentication.delay.ms": "0",
        JAAS: users(first="planted-first"),
        "password.encoder.secret": ENCODER,
        **{name.replace("_", "."): value for name, value in settings.items()},
    }
    given = {name: value for name, value in config.items() if value is not None}
    with Broker(directory, config=given) as broker:
        yield Running(broker)


def stored_in(directory: Path) -> dict[str, str]:
    """What a broker that has stopped has left."""

    async def read() -> dict[str, str]:
        store = EmbeddedStore.open(directory)
        try:
            return await Running._read(store)
        finally:
            await store.close()

    return asyncio.run(read())


def test_se_6_a_jaas_line_changes_while_the_broker_runs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """At once for new log-ins, after a restart as well, and neither tree nor log shows it."""
    caplog.set_level(logging.DEBUG, "barnabas")
    with running(tmp_path) as one:
        assert one.lets_in("first", "planted-first")
        one.alter((JAAS, users(alice=OLD)))
        assert one.lets_in("alice", OLD) and not one.lets_in("first", "planted-first")
        before = one.stored()[JAAS]
        one.alter((JAAS, users(alice=NEW)), ("log.retention.ms", "7777777"))
        assert one.lets_in("alice", NEW) and not one.lets_in("alice", OLD)
        assert one.stored()[JAAS] != before
        before = one.stored()[JAAS]
        one.alter(("log.retention.ms", "8888888"))
        assert one.stored()[JAAS] == before  # what stays is not encrypted again
        with pytest.raises(InvalidRequest, match="defines no user"):
            one.alter((JAAS, f'{PLAIN} username="x" password="{OLD}";'))
        assert one.lets_in("alice", NEW)
        with SyncAdmin(one.open_servers) as admin:
            (entry,) = [each for each in admin.describe_configs(THIS) if each.name == JAAS]
        assert (entry.value, entry.is_sensitive) == (None, True)
        assert all(each.value is None for each in entry.synonyms)
    with running(tmp_path) as one:
        assert one.lets_in("alice", NEW) and not one.lets_in("first", "planted-first")
        assert one.broker.server.node.config.int("log.retention.ms") == 8888888
    everything = caplog.text + "".join(capfd.readouterr()) + str(stored_in(tmp_path))
    assert "planted" not in everything.replace(str(tmp_path), "")


def test_se_6_a_listener_may_have_its_password_there_alone(tmp_path: Path) -> None:
    """As it is found in the tree of a Kafka: nothing of it is in the properties."""
    with running(tmp_path) as one:
        one.alter((JAAS, users(alice=OLD)))
    with running(tmp_path, **{JAAS: None}) as one:
        assert one.lets_in("alice", OLD)


def test_se_6_no_secret_to_encode_by(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Nothing is stored then; what is stored already is left out, and left there."""
    with running(tmp_path) as one:
        one.alter((JAAS, users(alice=OLD)))
    sealed = stored_in(tmp_path)[JAAS]
    with running(tmp_path, password_encoder_secret=None) as one:
        assert f"{JAAS} could not be decoded: Password encoder secret not configured" in caplog.text
        assert one.lets_in("first", "planted-first")
        with pytest.raises(InvalidConfig, match="Password encoder secret not configured"):
            one.alter((JAAS, users(alice=NEW)))
        one.alter(("log.retention.ms", "7777777"))
        assert one.stored()[JAAS] == sealed
    with running(tmp_path, password_encoder_secret="planted-other") as one:
        assert (
            f"{JAAS} could not be decoded: it is damaged, or it was encrypted with" in caplog.text
        )
        assert one.lets_in("first", "planted-first")
    with (
        pytest.raises(ConfigError, match=r"password\.encoder\.cipher\.algorithm: DES is not one"),
        running(tmp_path, password_encoder_cipher_algorithm="DES"),
    ):
        pass


def test_se_6_a_new_secret_takes_over(tmp_path: Path) -> None:
    """By the old one at one start, which may as well be given at the next."""
    with running(tmp_path) as one:
        one.alter((JAAS, users(alice=OLD)))
    renewed = {"password_encoder_secret": "planted-new", "password_encoder_old_secret": ENCODER}
    with running(tmp_path, **renewed) as one:
        assert one.lets_in("alice", OLD)
    sealed = stored_in(tmp_path)[JAAS]
    with running(tmp_path, **renewed) as one:
        assert one.stored()[JAAS] == sealed
    with running(tmp_path, password_encoder_secret="planted-new") as one:
        assert one.lets_in("alice", OLD)


def test_se_3_mechanisms_and_sessions_change_as_well(tmp_path: Path) -> None:
    """Of one listener, or of all that have none of their own."""
    with running(tmp_path) as one:
        with pytest.raises(InvalidRequest, match="CRAM-MD5: it is not supported on"):
            one.alter(("listener.name.in.sasl.enabled.mechanisms", "CRAM-MD5"))
        assert one.lets_in("first", "planted-first")
        one.alter(("sasl.enabled.mechanisms", "SCRAM-SHA-512"))
        assert not one.lets_in("first", "planted-first")
        one.alter(
            ("listener.name.in.sasl.enabled.mechanisms", "PLAIN,SCRAM-SHA-512"),
            ("listener.name.in.connections.max.reauth.ms", "60000"),
        )
        assert one.lets_in("first", "planted-first")


def test_se_6_a_keystore_and_its_password(tmp_path: Path) -> None:
    """The key's password is one of the secrets; a wrong one is refused, and the old key stays."""
    authority = Authority.make(tmp_path / "ca")
    files, sealed = authority.server(), authority.server(password=KEY_PASSWORD)
    prefix = "listener.name.ssl.ssl"
    settings = {**secured(files), "password.encoder.secret": ENCODER}
    given = tls_options(files, has_certificate=False)
    names = (f"{prefix}.keystore.location", f"{prefix}.key.password")

    def alter(broker: Broker, password: str) -> None:
        with broker.admin() as admin:
            admin.alter_configs(
                THIS, dict(zip(names, (str(sealed.keystore), password), strict=True))
            )

    with Broker(tmp_path / "data", config=settings) as broker:
        with pytest.raises(InvalidRequest, match="cannot read the private key") as said:
            alter(broker, OLD)
        assert OLD not in str(said.value)
        alter(broker, KEY_PASSWORD)
        SyncAdmin(tls_address(broker), **given).close()
    del settings["ssl.keystore.location"]  # the tree alone says where it is
    with Broker(tmp_path / "data", config=settings) as broker:
        SyncAdmin(tls_address(broker), **given).close()
