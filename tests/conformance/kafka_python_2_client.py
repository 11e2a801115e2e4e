"""kafka-python 2.0: the oldest protocol versions still in wide use, and no producer ids.

It cannot live beside its successor, so this file runs in an environment of its own, where it is
the whole program; the last function is what the tests call.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.kit.clients.clients import EARLIEST, LATEST, TIMEOUT_SECONDS, Refused
from tests.kit.clients.rows import Field, Row, read_rows, write_rows

Rows = list[list[Field]]


def _given(servers: str) -> dict[str, Any]:
    """What every client needs: where, and how if the suites are secured."""
    files = os.environ.get("BARNABAS_CLIENT_FILES")
    secured = {} if files is None else json.loads((Path(files) / "python.json").read_text())
    return {"bootstrap_servers": servers, **secured}


def produce(servers: str, request: list[str], rows: list[Row]) -> Rows:
    from kafka import KafkaProducer

    topic, codec, acks, _ = request
    with closing(
        KafkaProducer(
            **_given(servers),
            compression_type=None if codec == "none" else codec,
            acks=int(acks),
            linger_ms=20,
        )
    ) as producer:
        futures = []
        for partition, key, value, timestamp_ms, *flat in rows:
            names = [str(name, "utf-8") for name in flat[::2] if name is not None]
            headers = list(zip(names, flat[1::2], strict=True))
            when = None if timestamp_ms is None else int(timestamp_ms)
            futures.append(producer.send(topic, value, key, headers, int(partition or b""), when))
        producer.flush(TIMEOUT_SECONDS)
        for future in futures:
            future.get(TIMEOUT_SECONDS)
    return []


def consume(servers: str, request: list[str], _: list[Row]) -> Rows:
    from kafka import TopicPartition

    topic, partitions, count = request[0], int(request[1]), int(request[2])
    with closing(_consumer(servers)) as consumer:
        assigned = [TopicPartition(topic, number) for number in range(partitions)]
        consumer.assign(assigned)
        consumer.seek_to_beginning(*assigned)
        seen: Rows = []
        ends_at = time.monotonic() + TIMEOUT_SECONDS
        while len(seen) < count and time.monotonic() < ends_at:
            for records in consumer.poll(timeout_ms=200).values():
                for one in records:
                    flat = [field for header in one.headers for field in header]
                    place = [one.partition, one.offset, one.timestamp]
                    seen.append([*place, one.key, one.value, *flat])
        return seen


def offset(servers: str, request: list[str], _: list[Row]) -> Rows:
    from kafka import TopicPartition

    partition, spec = TopicPartition(request[0], 0), int(request[1])
    with closing(_consumer(servers)) as consumer:
        if spec == EARLIEST:
            return [[consumer.beginning_offsets([partition])[partition]]]
        if spec == LATEST:
            return [[consumer.end_offsets([partition])[partition]]]
        found = consumer.offsets_for_times({partition: spec})[partition]
        return [[None if found is None else found.offset]]


def list_topics(admin: Any, _: list[str], __: list[Row]) -> Rows:
    return [[topic] for topic in admin.list_topics()]


def describe_topic(admin: Any, request: list[str], _: list[Row]) -> Rows:
    [described] = admin.describe_topics(request)
    assert described["error_code"] == 0
    return [
        [one["partition"], one["leader"], _commas(one["replicas"]), _commas(one["isr"])]
        for one in sorted(described["partitions"], key=lambda one: int(one["partition"]))
    ]


def create_topic(admin: Any, request: list[str], rows: list[Row]) -> Rows:
    from kafka.admin import NewTopic

    topic, partitions, validate_only = request
    new = NewTopic(topic, int(partitions), 1, topic_configs=_pairs(rows))
    admin.create_topics([new], validate_only=validate_only == "1")
    return []


def create_partitions(admin: Any, request: list[str], _: list[Row]) -> Rows:
    from kafka.admin import NewPartitions

    admin.create_partitions({request[0]: NewPartitions(int(request[1]))})
    return []


def delete_topic(admin: Any, request: list[str], _: list[Row]) -> Rows:
    admin.delete_topics(request)
    return []


def describe_configs(admin: Any, request: list[str], _: list[Row]) -> Rows:
    [answer] = admin.describe_configs([_resource(request, None)])
    [(error_code, _message, _type, _name, configs)] = answer.resources
    _check(error_code)
    return [[key, value, source] for key, value, _read_only, source, *_ in configs]


def alter_configs(admin: Any, request: list[str], rows: list[Row]) -> Rows:
    answer = admin.alter_configs([_resource(request, _pairs(rows))])
    _check(answer.resources[0][0])
    return []


def log_sizes(admin: Any, _: list[str], __: list[Row]) -> Rows:
    answer = admin.describe_log_dirs()
    sizes: Rows = []
    for error_code, _directory, topics in answer.log_dirs:
        _check(error_code)
        sizes += [[topic, number, size] for topic, all in topics for number, size, *_ in all]
    return sizes


def describe_cluster(admin: Any, _: list[str], __: list[Row]) -> Rows:
    described = admin.describe_cluster()
    nodes = _commas([broker["node_id"] for broker in described["brokers"]])
    return [[described["controller_id"], nodes]]


def serve() -> None:
    """Answers requests until the input ends."""
    while request := read_rows(sys.stdin.buffer):
        verb, servers, *arguments = [str(field or b"", "utf-8") for field in request[0]]
        try:
            answer: Rows = [["ok"], *_answer(verb, servers, arguments, request[1:])]
        except Refused as refused:
            answer = [["refused", refused.code]]
        except Exception as error:
            # Whatever it is, the test learns of it; this process goes on.
            answer = [["failed", repr(error)]]
        write_rows(sys.stdout.buffer, answer)


def _answer(verb: str, servers: str, arguments: list[str], rows: list[Row]) -> Rows:
    from kafka import KafkaAdminClient
    from kafka.errors import BrokerResponseError

    called: Callable[[Any, list[str], list[Row]], Rows] = globals()[verb]
    if verb in {"produce", "consume", "offset"}:
        return called(servers, arguments, rows)
    try:
        with closing(KafkaAdminClient(**_given(servers))) as admin:
            return called(admin, arguments, rows)
    except BrokerResponseError as error:
        raise Refused(error.errno) from error


def _consumer(servers: str) -> Any:
    from kafka import KafkaConsumer

    return KafkaConsumer(
        **_given(servers), group_id=None, enable_auto_commit=False, fetch_max_wait_ms=100
    )


def _resource(request: list[str], configs: dict[str, str] | None) -> Any:
    from kafka.admin import ConfigResource, ConfigResourceType

    kind, named = request
    return ConfigResource(ConfigResourceType[kind.upper()], named, configs)


def _pairs(rows: list[Row]) -> dict[str, str]:
    return {str(key or b"", "utf-8"): str(value or b"", "utf-8") for key, value in rows}


def _check(error_code: int) -> None:
    if error_code:
        raise Refused(error_code)


def _commas(numbers: list[int]) -> str:
    return ",".join(map(str, numbers))


def command(_: Path) -> list[str]:
    """What starts this file as a program."""
    from tests.kit import foreign

    module = "tests.conformance.kafka_python_2_client"
    script = f"import sys; sys.path.insert(0, {str(foreign.CHECKOUT)!r})"
    script += f"; from {module} import serve; serve()"
    return [str(foreign.require_old_kafka_python()), "-c", script]
