"""SE-6: no object of a secured broker or of its clients shows a secret by its `repr`."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from types import BuiltinFunctionType, FrameType, FunctionType, ModuleType
from typing import Any

import barnabas
from barnabas.client import SyncAdmin, SyncConsumer, SyncProducer

_NOT_FOLLOWED = (ModuleType, FunctionType, BuiltinFunctionType, FrameType, type)
LEAST_OBJECTS = 300


def reachable(roots: Iterable[object]) -> Iterator[object]:
    """All that the roots hold, and what that holds; a settings tuple is seen only this way."""
    seen: dict[int, object] = {}
    left = list(roots)
    while left:
        one = left.pop()
        if id(one) not in seen and not isinstance(one, _NOT_FOLLOWED):
            seen[id(one)] = one
            left += gc.get_referents(one)
            yield one


def test_se_6_no_object_shows_a_secret() -> None:
    with barnabas.Broker(secure=True) as broker:
        settings: Any = broker.client_settings()
        password = settings["sasl.jaas.config"].split('"')[3]
        with (
            SyncAdmin(settings) as admin,
            SyncProducer(settings) as producer,
            SyncConsumer(settings, group_id="g") as consumer,
        ):
            producer.send("orders", b"one").result(60)
            broker.topic("orders").send(b"two")
            consumer.subscribe(["orders"])
            consumer.poll(timeout_ms=100)
            shown: dict[str, str] = {}
            holders = 0
            for one in reachable([broker, broker.server, admin, producer, consumer]):
                holders += isinstance(one, str) and password in one
                if type(one).__module__.startswith("barnabas."):
                    shown[f"{type(one).__qualname__} {id(one)}"] = repr(one)
    assert holders >= 3, "they do have it"
    assert len(shown) > LEAST_OBJECTS
    assert [name for name, text in shown.items() if password in text] == []
    assert not any("PRIVATE KEY" in text for text in shown.values())
    print(len(shown), "objects were shown, and no secret")
