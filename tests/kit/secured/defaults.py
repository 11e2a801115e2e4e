"""What clients and embedded brokers have for granted in the secured suites.

Tests make them as ever, by their constructors; these are given the settings that the test does not
speak of. One that sets `security.protocol` itself is left alone.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tests.kit.secured import secrets
from tests.kit.secured.suite import FILES, LIBRDKAFKA, Suite, suite


def install() -> None:
    """To be called before a test module takes a client's class from its library."""
    own = suite()
    os.environ[FILES] = str(own.clients)
    os.environ["KCAT_CONFIG"] = str(own.clients / LIBRDKAFKA)
    secrets.listen_to_commands()
    _install_ours(own)
    _install_confluent(own)
    _install_python(own)


def _install_ours(own: Suite) -> None:
    from barnabas import Broker, Cluster
    from barnabas.client import Admin, Consumer, Producer
    from barnabas.client.config import of_every_client

    options = of_every_client(own.setup.client_settings())
    for client in (Admin, Consumer, Producer):
        _add(client, options)
    for broker in (Broker, Cluster):
        _secure(broker, str(own.setup.directory))


def _install_confluent(own: Suite) -> None:
    """Two of its classes are compiled and cannot be changed, so heirs take their names."""
    import confluent_kafka
    from confluent_kafka.admin import AdminClient

    settings = own.named("confluent-kafka")
    for name in ("Producer", "Consumer"):
        setattr(confluent_kafka, name, _heir(getattr(confluent_kafka, name), settings))
    _add(AdminClient, settings)


def _install_python(own: Suite) -> None:
    import aiokafka
    import kafka
    from aiokafka import admin

    for client in (kafka.KafkaProducer, kafka.KafkaConsumer, kafka.KafkaAdminClient):
        _add(client, own.named("kafka-python"))
    for client in (aiokafka.AIOKafkaProducer, aiokafka.AIOKafkaConsumer, admin.AIOKafkaAdminClient):
        _add(client, own.named("aiokafka"))


def _add(client: Any, settings: Mapping[str, Any]) -> None:
    """Let its constructor have them as keyword arguments."""
    original: Callable[..., None] = client.__init__

    @functools.wraps(original)
    def __init__(self: Any, *words: Any, **named: Any) -> None:
        first = words[0] if words and isinstance(words[0], Mapping) else {}
        if not _is_set([*first, *named]):
            named = {**settings, **named}
        original(self, *words, **named)

    client.__init__ = __init__


def _heir(client: Any, settings: Mapping[str, Any]) -> type:
    """A class whose constructor adds them to the dictionary that it is given."""

    class Secured(client):  # type: ignore[misc]
        def __init__(self, *words: Any, **named: Any) -> None:
            given = {**(words[0] if words else {}), **named}
            own = {} if _is_set(given) else settings
            super().__init__({**own, **given})

    Secured.__name__ = Secured.__qualname__ = client.__name__
    return Secured


def _secure(broker: Any, directory: str) -> None:
    """Let it be secured, unless it is given listeners of its own."""
    original: Callable[..., None] = broker.__init__

    @functools.wraps(original)
    def __init__(self: Any, *words: Any, **named: Any) -> None:
        configs = [each for each in (*words, named.get("config")) if isinstance(each, Mapping)]
        if not any("listener" in name for config in configs for name in config):
            named.setdefault("secure", directory)
        original(self, *words, **named)

    broker.__init__ = __init__


def _is_set(names: Iterable[str]) -> bool:
    return any(name.replace(".", "_") == "security_protocol" for name in names)
