"""Our producer and consumer under careless users and a bad wire, of all kinds (PR-5, PR-8, CO-1).

Nothing hangs, nothing accepted is lost, nothing is doubled, and each refusal names the argument.
"""

from __future__ import annotations

import inspect
import re
import threading
from collections import deque
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barnabas.client import SyncConsumer, SyncProducer, TopicPartition
from barnabas.client.config import ConsumerOptions, ProducerOptions
from barnabas.client.producer.batch import ProducerRecord
from barnabas.errors import BarnabasError, ConfigError
from barnabas.protocol.api import FETCH, INIT_PRODUCER_ID, LIST_OFFSETS, METADATA, PRODUCE
from tests.kit.effort import examples
from tests.kit.processes.answer_proxy import AnswerProxy, Fate, behind_a_proxy, let_pass
from tests.kit.raw_client import batch

pytestmark = pytest.mark.secured

HASTE: Any = {
    "request_timeout_ms": 300,
    "retry_backoff_ms": 5,
    "retry_backoff_max_ms": 5,
    "reconnect_backoff_ms": 5,
    "reconnect_backoff_max_ms": 5,
}
PATIENCE_S = 60
TOPIC = "odd"
NAME = TopicPartition(TOPIC, 0)
_NUMBERS = count()


@pytest.fixture(scope="module")
def proxy() -> Iterator[AnswerProxy]:
    with behind_a_proxy() as made:
        yield made


def in_time(work: Callable[[], None]) -> None:
    """Let `work` end, or fail instead of hanging; raises what it raises."""
    errors: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(PATIENCE_S)
    assert not thread.is_alive(), "it hangs"
    for error in errors:
        raise error


# ---- careless users ----


class Odd:
    """Something that no method wants."""


def endless_names() -> Iterator[str]:
    yield TOPIC


Atoms: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([2**31, 2**63, -(2**63), 10**300, -1]),
    st.floats(),
    st.binary(max_size=3),
    st.builds(bytearray, st.binary(max_size=3)),
    st.builds(memoryview, st.binary(max_size=3)),
    st.sampled_from(["", ".", "..", "a b", "x" * 250, "\ud800", "ü", "\0", TOPIC]),
    st.builds(Odd),
    st.sampled_from([Odd, int, len, ..., 1j]),
    st.builds(endless_names),
)
Anything = st.recursive(
    Atoms,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner, inner),
        st.tuples(st.just(TOPIC), inner),
        st.dictionaries(st.just(NAME), inner, max_size=1),
        st.dictionaries(st.sampled_from(["a", 1, ("t", 0)]), inner, max_size=2),
    ),
    max_leaves=4,
)

PRODUCER_CALLS: list[tuple[str, dict[str, Any]]] = [
    (
        "send",
        {
            "topic": TOPIC,
            "value": b"v",
            "key": b"k",
            "partition": 0,
            "timestamp_ms": 1,
            "headers": [("h", b"v")],
        },
    ),
    ("send_many", {"records": [ProducerRecord(TOPIC, b"v", partition=0)]}),
    ("send_batch", {"topic_partition": NAME, "batch": batch(b"v")}),
    ("partitions_for", {"topic": TOPIC}),
    ("send_offsets_to_transaction", {"offsets": {NAME: 0}, "group": "odd"}),
]
CONSUMER_CALLS: list[tuple[str, dict[str, Any]]] = [
    ("poll", {"timeout_ms": 0}),
    ("fetch_batches", {"timeout_ms": 0}),
    ("assign", {"topic_partitions": [NAME]}),
    ("seek", {"topic_partition": NAME, "offset": 0}),
    ("position", {"topic_partition": NAME}),
    ("beginning_offsets", {"topic_partitions": [NAME]}),
    ("end_offsets", {"topic_partitions": [NAME]}),
    ("offsets_for_times", {"timestamps": {NAME: 0}}),
    ("partitions_for", {"topic": TOPIC}),
    ("list_topics", {"topics": [TOPIC]}),
    ("topic_ids", {"topics": [TOPIC]}),
    ("commit_sync", {"offsets": {NAME: 0}}),
    ("commit_async", {"offsets": {NAME: 0}, "when_done": lambda offsets, error: None}),
    ("subscribe", {"topics": [TOPIC], "listener": None}),
]
CONSUMER_MANY = ["seek_to_beginning", "seek_to_end", "pause", "resume", "committed"]
ODD_CALLS = settings(
    max_examples=examples(300),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def call(method: Callable[..., Any], positional: list[Any], named: dict[str, Any]) -> Any:
    """What it returns; a refusal has to name an argument of the method."""
    try:
        return method(*positional, **named)
    except (TypeError, ValueError) as error:
        names = [*inspect.signature(method).parameters, *ProducerRecord._fields]
        words = "|".join([*names, "record", "topic_partition", "topic_partitions"])
        if "is not assigned to this consumer" not in str(error):
            assert re.match(rf"({words}): ", str(error)), f"{method.__name__}: {error!r}"
    except BarnabasError:
        pass
    return None


@pytest.fixture(scope="module")
def producer(proxy: AnswerProxy) -> Iterator[SyncProducer]:
    with SyncProducer(proxy.servers, max_block_ms=10_000) as made:
        yield made


@pytest.fixture(scope="module")
def consumer(proxy: AnswerProxy, producer: SyncProducer) -> Iterator[SyncConsumer]:
    producer.send(TOPIC, b"v", partition=0).result(PATIENCE_S)
    with SyncConsumer(proxy.servers, group_id="odd", default_api_timeout_ms=5_000) as made:
        yield made


@ODD_CALLS
@given(st.data())
def test_every_argument_of_the_producer(producer: SyncProducer, data: st.DataObject) -> None:
    """PR-1, PR-8: refused by name, or sent; and the producer goes on."""
    name, good = data.draw(st.sampled_from(PRODUCER_CALLS))
    odd = data.draw(st.sampled_from(sorted(good)))
    named = {**good, odd: data.draw(Anything)}

    def work() -> None:
        delivery = call(getattr(producer, name), [], named)
        producer.flush()
        assert delivery is None or isinstance(delivery, list) or delivery.done()
        assert producer.send(TOPIC, b"v", partition=0).result(PATIENCE_S).offset >= 0

    in_time(work)


@ODD_CALLS
@given(argument=Anything, name=st.sampled_from(["result", "exception", "add_done_callback"]))
def test_every_argument_of_a_delivery(producer: SyncProducer, argument: Any, name: str) -> None:
    """PR-8: the record is sent, whatever is asked about it."""
    delivery = producer.send(TOPIC, b"v", partition=0)
    in_time(lambda: call(_or_late(getattr(delivery, name)), [argument], {}))
    assert delivery.result(PATIENCE_S).offset >= 0


def _or_late(method: Callable[..., Any]) -> Callable[..., Any]:
    def call_it(timeout_s: Any = None, callback: Any = None) -> None:
        try:
            method(timeout_s)
        except TimeoutError:
            return  # a short time is a good argument

    return call_it


@ODD_CALLS
@given(st.data())
def test_every_argument_of_the_consumer(consumer: SyncConsumer, data: st.DataObject) -> None:
    """CO-2: refused by name, or done; and the consumer goes on."""
    if data.draw(st.booleans()):
        name, good = data.draw(st.sampled_from(CONSUMER_CALLS))
        odd = data.draw(st.sampled_from(sorted(good)))
        positional, named = [], {**good, odd: data.draw(Anything)}
    else:
        name, named = data.draw(st.sampled_from(CONSUMER_MANY)), {}
        positional = [data.draw(Anything)]

    def work() -> None:
        consumer.unsubscribe()
        consumer.assign([NAME])
        consumer.seek(NAME, 0)
        if name == "subscribe":
            consumer.unsubscribe()
        call(getattr(consumer, name), positional, named)
        consumer.unsubscribe()
        consumer.assign([NAME])
        consumer.seek(NAME, 0)
        assert [record.offset for record in consumer.poll(PATIENCE_S * 1_000)][:1] == [0]

    in_time(work)


OPTIONS = st.one_of(
    st.tuples(st.just(SyncProducer), st.sampled_from(sorted(ProducerOptions.__annotations__))),
    st.tuples(st.just(SyncConsumer), st.sampled_from(sorted(ConsumerOptions.__annotations__))),
)


@ODD_CALLS
@given(made=OPTIONS, odd=Anything)
def test_every_option_of_a_client(proxy: AnswerProxy, made: tuple[Any, str], odd: Any) -> None:
    """PR-3, CO-2: refused by its name, or taken."""
    kind, option = made

    def work() -> None:
        try:
            client = kind(proxy.servers, **{option: odd})
        except ConfigError as error:
            assert option in str(error) or option.replace("_", ".") in str(error), repr(error)
        except BarnabasError:
            return  # taken, and then too short a time for anything
        else:
            client.close()

    in_time(work)


@pytest.mark.parametrize("odd", [7, "yes", b"", 1.0, Odd()])
def test_the_arguments_of_close_are_checked(proxy: AnswerProxy, odd: Any) -> None:
    with SyncConsumer(proxy.servers, group_id="odd") as consumer:
        with pytest.raises(TypeError, match=r"^autocommit: "):
            consumer.close(autocommit=odd)
        assert consumer.partitions_for(TOPIC) is not None


# ---- a bad wire ----

Fates = st.lists(st.sampled_from([each for each in Fate if each is not Fate.HOLD]), max_size=12)


def in_turn(fates: list[Fate], *keys: int) -> Callable[[int], Fate]:
    """These fates for the answers to requests of these kinds, then all arrive."""
    left = deque(fates)
    return lambda key: left.popleft() if left and key in keys else Fate.PASS


@settings(
    max_examples=examples(25, least=5),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    sending=Fates,
    reading=Fates,
    good=st.lists(st.booleans(), max_size=30).map(lambda each: [True, *each]),
)
def test_a_bad_wire_loses_and_doubles_nothing(
    proxy: AnswerProxy, sending: list[Fate], reading: list[Fate], good: list[bool]
) -> None:
    """PR-5, PR-6, PR-8, CO-1: among records that are refused, in every order of lost, late and
    repeated answers."""
    topic = f"wire-{next(_NUMBERS)}"
    name = TopicPartition(topic, 0)

    def work() -> None:
        proxy.rule = let_pass  # to begin with: a client that finds no broker is none
        sent = []
        with SyncProducer(proxy.servers, batch_size=100, **HASTE) as producer:
            proxy.rule = in_turn(sending, PRODUCE.key, METADATA.key, INIT_PRODUCER_ID.key)
            for number, is_good in enumerate(good):
                if is_good:
                    sent.append(producer.send(topic, b"%d" % number, partition=0))
                else:
                    with pytest.raises(TypeError, match="headers: "):
                        producer.send(topic, b"v", headers=[("h", number)])  # type: ignore[list-item]
            producer.flush()
            assert all(delivery.done() for delivery in sent)
        assert [delivery.exception(PATIENCE_S) for delivery in sent] == [None] * len(sent)
        proxy.rule = let_pass
        values: list[bytes | None] = []
        with SyncConsumer(proxy.servers, auto_offset_reset="earliest", **HASTE) as consumer:
            proxy.rule = in_turn(reading, FETCH.key, METADATA.key, LIST_OFFSETS.key)
            consumer.assign([name])
            while len(values) < len(sent):
                values += [record.value for record in consumer.poll(1_000)]
            proxy.rule = let_pass
            assert consumer.end_offsets([name])[name] == len(sent)
        assert values == [delivery.record.value for delivery in sent]

    try:
        in_time(work)
    finally:
        proxy.rule = let_pass
