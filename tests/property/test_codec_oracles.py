"""Our bytes read and written again by two codecs that we did not write: kio and kafka-python.

Each message is decoded by the oracle, compared field by field, and encoded again. kio is given
nothing but our own bytes (it does not survive hostile ones), and only values that it takes: it
has enums and time spans where the wire has numbers.
"""

from __future__ import annotations

import datetime
import importlib.util
import io
import uuid
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from barnabas.protocol import codec
from barnabas.protocol.api import APIS, Api
from barnabas.protocol.message import Field, Message
from tests.kit.effort import IS_QUICK, examples
from tests.kit.random_messages import messages

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.filterwarnings("ignore::DeprecationWarning:kafka", "ignore:open_text"),
]

quick = settings(
    max_examples=examples(3),
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

ROWS = [
    (api, kind, version)
    for api in APIS.values()
    for kind in ("Request", "Response")
    for version in range(api.min_version, api.max_version + 1)
]
BETWEEN_BROKERS = {
    "LeaderAndIsr", "StopReplica", "UpdateMetadata", "ControlledShutdown", "AlterPartition",
    "AllocateProducerIds",
}  # fmt: skip
"""kafka-python is a client's library; kio has some of these, the recorded frames all."""

UNKNOWN_TO_KAFKA_PYTHON = BETWEEN_BROKERS | {
    "CreateDelegationToken", "RenewDelegationToken", "ExpireDelegationToken",
    "DescribeDelegationToken",
}  # fmt: skip

KAFKA_PYTHON_ROWS = [
    (api, kind, version) for api, kind, version in ROWS if api.name not in UNKNOWN_TO_KAFKA_PYTHON
]
KIO_ROWS = [  # kio has the range of Kafka 4 only: higher minima (KIP-896), no ZooKeeper
    (api, kind, version)
    for api, kind, version in ROWS
    if importlib.util.find_spec(f"kio.schema.{api.stem}")
    and importlib.util.find_spec(f"kio.schema.{api.stem}.v{version}")
]


def named(rows: list[tuple[Api, str, int]]) -> pytest.MarkDecorator:
    """In a quick run of each message the oldest and the newest version."""
    if IS_QUICK:
        versions: dict[str, list[tuple[Api, str, int]]] = {}
        for row in rows:
            versions.setdefault(f"{row[0].name}{row[1]}", []).append(row)
        rows = [row for each in versions.values() for row in dict.fromkeys((each[0], each[-1]))]
    names = [f"{api.name}{kind}-{version}" for api, kind, version in rows]
    return pytest.mark.parametrize(("api", "kind", "version"), rows, ids=names)


def ours(api: Api, kind: str) -> type[Message]:
    return api.request if kind == "Request" else api.response


OWN_TAGS = 10_000
"""Tagged fields from here on are ours; the oracles do not know them."""


def tame(made: Field) -> st.SearchStrategy[Any] | None:
    """Values that kio's types allow too."""
    if made.tag is not None and made.tag >= OWN_TAGS:
        return st.just(made.default)
    if made.name.endswith("error_code"):
        return st.integers(-1, 119)
    if made.name == "transaction_start_time_ms":
        return st.integers(0, 4_000_000_000_000)  # kio has no word for "not begun"
    if made.name.endswith("_timestamp_ms"):
        return st.integers(0, 4_000_000_000_000)
    if made.name in {
        "retention_time_ms", "max_lifetime_ms", "session_lifetime_ms", "renew_period_ms",
        "expiry_time_period_ms",
    }:  # fmt: skip
        return st.integers(-1, 4_000_000_000_000)  # of timedelta not even all of 64 bits
    if made.name in {"timestamp", "log_append_time_ms"}:
        return st.just(-1) | st.integers(0, 4_000_000_000_000)
    return None


def unambiguous(made: Field) -> st.SearchStrategy[Any] | None:
    """kafka-python reads a whole ApiVersions answer with an error as version 0."""
    if made.tag is not None and made.tag >= OWN_TAGS:
        return st.just(made.default)
    return st.just(0) if made.name == "error_code" else None


@named(KAFKA_PYTHON_ROWS)
@quick
@given(data=st.data())
def test_kafka_python_agrees(api: Api, kind: str, version: int, data: st.DataObject) -> None:
    oracle = _kafka_python_class(f"{api.name}{kind}")
    message = data.draw(messages(ours(api, kind), version, unambiguous))
    encoded = joined(codec.encode(message, version))
    theirs = oracle.decode(encoded, version=version)
    assert_same(message, theirs, version)
    if not has_absent_struct(message, version):
        theirs._header = None  # decoded without one, it lacks even the attribute
        assert is_equal(theirs.encode(version=version), encoded)


@named(KIO_ROWS)
@quick
@given(data=st.data())
def test_kio_agrees(api: Api, kind: str, version: int, data: st.DataObject) -> None:
    from kio.serial import entity_reader, entity_writer

    oracle = _kio_class(api, kind, version)
    message = data.draw(messages(ours(api, kind), version, tame))
    encoded = joined(codec.encode(message, version))
    theirs, end = entity_reader(oracle)(encoded, 0)
    assert end == len(encoded)
    assert_same(message, theirs, version)
    written = io.BytesIO()
    entity_writer(oracle)(written, theirs)
    assert is_equal(written.getvalue(), encoded)


def _kafka_python_class(name: str) -> Any:
    for package in ("admin", "consumer", "metadata", "producer", "sasl"):
        found = getattr(importlib.import_module(f"kafka.protocol.{package}"), name, None)
        if found is not None:
            return found
    raise LookupError(name)


def _kio_class(api: Api, kind: str, version: int) -> Any:
    module = importlib.import_module(f"kio.schema.{api.stem}.v{version}.{kind.lower()}")
    return getattr(module, f"{api.name}{kind}")


def assert_same(message: Message, theirs: Any, version: int) -> None:
    for made in message.fields:
        if version not in made.versions or (made.tag or 0) >= OWN_TAGS:
            continue
        mine, name = getattr(message, made.name), made.name
        if name.endswith("authorized_operations") and not isinstance(
            getattr(theirs, name, None), int
        ):
            continue  # a set in kafka-python, maybe under another name; its bytes are compared
        if not hasattr(theirs, name) and name.endswith("_ms"):
            name = name.removesuffix("_ms")  # kio leaves the unit to the type
        assert_same_value(mine, getattr(theirs, name), version)


def assert_same_value(mine: Any, other: Any, version: int) -> None:
    if isinstance(mine, Message) and other is None:
        assert all(getattr(mine, made.name) == made.default for made in mine.fields)  # absent
    elif isinstance(mine, Message):
        assert_same(mine, other, version)
    elif isinstance(mine, list):
        assert len(mine) == len(other)
        for one, two in zip(mine, other, strict=True):
            assert_same_value(one, two, version)
    elif isinstance(other, datetime.timedelta):
        assert mine == other / datetime.timedelta(milliseconds=1)
    elif isinstance(other, datetime.datetime):
        assert mine == round(other.timestamp() * 1000)
    elif isinstance(other, uuid.UUID):
        assert mine == other.bytes
    elif isinstance(mine, bytes) and len(mine) == 16 and other is None:
        assert mine == bytes(16)  # kio's "no id"
    elif mine == -1 and other is None:
        pass  # kio's "no timestamp"
    else:
        assert is_equal(mine, other)


def has_absent_struct(message: Message, version: int) -> bool:
    """kafka-python reads an absent tagged struct as None, and cannot write that."""
    for made in message.fields:
        value = getattr(message, made.name)
        if version in made.versions and isinstance(value, Message):
            if made.tag is not None and value == made.default:
                return True
        elif isinstance(value, list):
            parts = (item for item in value if isinstance(item, Message))
            if any(has_absent_struct(item, version) for item in parts):
                return True
    return False


def joined(parts: list[Any]) -> bytes:
    return b"".join(parts)


def is_equal(mine: Any, other: Any) -> bool:
    """A call, since pytest would print a diff of two `==` operands: minutes for 20 KB."""
    return bool(mine == other)
