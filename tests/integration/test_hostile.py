"""Hostile bytes against the port of a running server (UX-4): it answers an error or closes the
connection, and no other client notices.

The seed is printed; `BARNABAS_SEED` gives another.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import struct
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

import psutil
import pytest

from barnabas.errors import CorruptMessage, InvalidRecord
from barnabas.protocol.api import API_VERSIONS, APIS, CREATE_TOPICS, FETCH, PRODUCE
from barnabas.protocol.frame import encode_request
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from barnabas.records.batch import read_header
from barnabas.records.compression import GZIP, LZ4, SNAPPY, ZSTD
from barnabas.records.record import BatchBuilder
from tests.integration.attack import Attack, Bystander
from tests.integration.hostile import Hostile, Recorded, bomb, legacy
from tests.kit.broker.fetches import fetch_request
from tests.kit.broker.produces import produce_request
from tests.kit.processes.broker_process import BrokerProcess, broker_process
from tests.kit.raw_client import NO_TIDYING, RawClient, batch
from tests.kit.waiting import wait_until

FRAMES = 100_000
WARM_UP_FRAMES = 15_000
RECORDED_FRAMES = 20_000
LEAST_RECORDED = 150
GROWTH_BYTES = 32 << 20
_NEW_CONNECTIONS = 5  # besides those of an attack
_OTHER_FILES = 20  # than logs and indexes
_MOST_ROUNDS = 5  # until the memory that an allocator keeps no longer grows
PATIENCE_SECONDS = 20.0  # a stalled loop stalls for good; a loaded machine is merely slow


class Target:
    """The broker that is attacked, and what is known of it from outside."""

    def __init__(self, broker: BrokerProcess) -> None:
        assert broker.process is not None
        self.broker = broker
        self.port = broker.port
        self.process = psutil.Process(broker.process.pid)
        self.connections = self._connections()

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=60)

    def resident_bytes(self) -> int:
        return int(self.process.memory_info().rss)

    def growth_bytes(self, before_bytes: int) -> int:
        """By how much it has grown for good: what is being worked on gets time to end."""
        ends_at = time.monotonic() + 60
        while (grown := self.resident_bytes() - before_bytes) >= GROWTH_BYTES:
            if time.monotonic() > ends_at:
                break
            time.sleep(0.2)
        return grown

    def check(self) -> None:
        """It lives, serves, holds no connection that is gone, and its log shows no bug."""
        with RawClient(self.broker.bootstrap_servers) as client:
            sent = produce_request("t", {0: batch(b"still here")})
            answer = client.call(PRODUCE, 9, sent).responses[0].partition_responses[0]
            assert answer.error_code == 0
        assert self.process.is_running()
        log = self.broker.log.read_text()
        assert "Traceback" not in log, log[log.index("Traceback") - 500 :][:4000]
        wait_until(lambda: self._connections() <= self.connections + _NEW_CONNECTIONS)
        # Each partition that was written or read may keep its log and its two indexes open.
        partitions = sum(1 for _ in self.broker.data_dir.glob("*-*/partition.metadata"))
        assert len(self.process.open_files()) <= 3 * partitions + _OTHER_FILES

    def _connections(self) -> int:
        """Descriptors that are not files: connections above all."""
        return int(self.process.num_fds()) - len(self.process.open_files())


@pytest.fixture
def target(tmp_path: Path) -> Iterator[Target]:
    options = (f"{name}={value}" for name, value in NO_TIDYING.items())
    with broker_process(tmp_path, "auto.create.topics.enable=false", *options) as broker:
        with RawClient(broker.bootstrap_servers) as client:
            _create(client, "t")
            _create(client, "bystander")
            _create(client, "compacted", {"cleanup.policy": "compact"})
            _create(client, "zipped", {"compression.type": "gzip"})
        yield Target(broker)


def _create(client: RawClient, name: str, config: Mapping[str, str] = MappingProxyType({})) -> None:
    given = [CreatableTopicConfig(name=key, value=value) for key, value in config.items()]
    topic = CreatableTopic(name=name, num_partitions=2, replication_factor=1, configs=given)
    request = CreateTopicsRequest(topics=[topic], timeout_ms=60_000)
    assert client.call(CREATE_TOPICS, 5, request).topics[0].error_code == 0
    for index in (0, 1):
        records = BatchBuilder()
        records.append(1_700_000_000_000, b"key", b"value")
        client.call(PRODUCE, 9, produce_request(name, {index: bytes(records.build())}))


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_ux_4_a_hundred_thousand_hostile_frames(target: Target) -> None:
    seed = int(os.environ.get("BARNABAS_SEED", "20240917"))
    attack = Attack(target.port, Hostile(seed))
    began = time.monotonic()
    for bombs in [_bombs(codec) for codec in (GZIP, LZ4, ZSTD)] * 4:
        _bombard(target, "compacted", bombs)
    with Bystander(target.broker.bootstrap_servers, "bystander") as bystander:
        attack.run(WARM_UP_FRAMES)
        warm_bytes = target.resident_bytes()
        attack.run(FRAMES - WARM_UP_FRAMES)
    grown_bytes = target.growth_bytes(warm_bytes)
    print(
        f"{attack.frames} hostile frames, seed {seed}, in {time.monotonic() - began:.0f} s: "
        f"{dict(attack.outcomes)}; resident memory grew by {grown_bytes >> 10} KiB; "
        f"{bystander.answers} exchanges beside them, the slowest {bystander.slowest_seconds:.3f} s"
    )
    assert attack.frames >= FRAMES
    assert bystander.failure is None, bystander.failure
    assert bystander.answers > 50
    assert bystander.slowest_seconds < PATIENCE_SECONDS
    assert grown_bytes < GROWTH_BYTES
    target.check()


@pytest.mark.slow
@pytest.mark.foreign
@pytest.mark.timeout(600)
def test_ux_4_what_real_clients_once_sent_damaged(target: Target, shared: Path) -> None:
    """Frames recorded between clients and a Kafka 3.9.1: their topics are here, and each client's
    own way to fill a message, which our encoder does not have."""
    seed = int(os.environ.get("BARNABAS_SEED", "20240918"))
    recorded = [
        bytes.fromhex(exchange["request_hex"])
        for file in sorted((shared / "fixtures" / "kafka-3.9" / "wire").glob("*.jsonl"))
        for exchange in map(json.loads, file.read_text().splitlines())
        if exchange["api_key"] in APIS
    ]
    with RawClient(target.broker.bootstrap_servers) as client:
        for name in ("rdk", "aio", "kp", "c", "w"):
            _create(client, name)
    attack = Attack(target.port, Recorded(seed, recorded))
    with Bystander(target.broker.bootstrap_servers, "bystander") as bystander:
        attack.run(RECORDED_FRAMES)
    print(
        f"{attack.frames} frames made of {len(recorded)} recorded ones, seed {seed}: "
        f"{dict(attack.outcomes)}; the slowest exchange beside them "
        f"{bystander.slowest_seconds:.3f} s"
    )
    assert len(recorded) >= LEAST_RECORDED
    assert attack.frames >= RECORDED_FRAMES
    assert bystander.failure is None, bystander.failure
    assert bystander.slowest_seconds < PATIENCE_SECONDS
    target.check()


def test_ux_4_half_a_frame_and_then_silence(target: Target) -> None:
    """Hundreds of connections that never finish what they began: others are served."""
    before = target.resident_bytes()
    frame = Hostile(1).valid(PRODUCE, 9)
    halves = [frame[: len(frame) // 2], b"", frame[:3]]
    silent = []
    with Bystander(target.broker.bootstrap_servers, "bystander") as bystander:
        for n in range(300):
            half = target.connect()
            half.sendall(struct.pack(">i", 1 << (n % 26)) + halves[n % 3])
            silent.append(half)
        answers = bystander.answers
        wait_until(lambda: bystander.answers > answers + 20)
    assert bystander.failure is None and bystander.slowest_seconds < PATIENCE_SECONDS
    assert target.resident_bytes() - before < 300 * 300 * 1024, "memory follows what was sent"
    for half in silent:
        half.close()
    target.check()


@pytest.mark.slow
def test_ux_4_connections_that_come_and_go(target: Target) -> None:
    """Thousands, some with a word, some cut off within one, some reset."""
    frame = Hostile(2).valid(FETCH, 11)
    whole = struct.pack(">i", len(frame)) + frame
    with Bystander(target.broker.bootstrap_servers, "bystander") as bystander:
        for n in range(3000):
            with target.connect() as passing:
                passing.sendall(whole[: n % (len(whole) + 1)])
                if n % 3 == 0:  # a reset instead of an end
                    passing.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    assert bystander.failure is None and bystander.slowest_seconds < PATIENCE_SECONDS
    target.check()


@pytest.mark.parametrize("size", [-1, -0x80000000, 0x7FFFFFFF, (100 << 20) + 1, 0x47455420])
def test_ux_4_frames_of_impossible_sizes_are_not_awaited(target: Target, size: int) -> None:
    """The last one is "GET ": a browser."""
    with target.connect() as client:
        client.sendall(struct.pack(">i", size))
        assert _is_closed(client)
    target.check()
    assert target.broker.log.read_text().count("connection closed") == 1


@pytest.mark.slow
def test_ux_4_readers_that_never_read(target: Target) -> None:
    """Answers of a mebibyte each, asked for without end: the broker stops reading instead."""
    with RawClient(target.broker.bootstrap_servers) as client:
        for _ in range(16):
            client.call(PRODUCE, 9, produce_request("t", {0: batch(bytes(1_000_000))}))
    asked = b"".join(map(bytes, encode_request(FETCH, 11, 1, "greedy", fetch_request("t"))))  # type: ignore[arg-type]
    metadata = b"".join(map(bytes, encode_request(API_VERSIONS, 0, 1, "g", ApiVersionsRequest())))  # type: ignore[arg-type]
    before = target.resident_bytes()
    greedy = []
    with Bystander(target.broker.bootstrap_servers, "bystander") as bystander:
        for n in range(20):
            reader = target.connect()
            reader.settimeout(0.02)
            with contextlib.suppress(TimeoutError, ConnectionError):
                for _ in range(200):
                    reader.sendall((asked if n % 2 else metadata) * 200)
            greedy.append(reader)
        answers = bystander.answers
        wait_until(lambda: bystander.answers > answers + 20)
    assert bystander.failure is None and bystander.slowest_seconds < PATIENCE_SECONDS
    assert target.growth_bytes(before) < GROWTH_BYTES
    for reader in greedy:
        reader.close()
    target.check()


def test_ux_4_a_writer_of_one_byte_at_a_time_is_served(target: Target) -> None:
    parts = encode_request(PRODUCE, 9, 7, "slow", produce_request("t", {0: batch(b"slowly")}))
    with target.connect() as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in b"".join(map(bytes, parts)):  # type: ignore[arg-type]
            client.sendall(bytes([byte]))
        assert struct.unpack(">ii", client.recv(8, socket.MSG_WAITALL))[1] == 7
    target.check()


@pytest.mark.parametrize(
    ("topic", "codec"),
    [("compacted", GZIP), ("compacted", SNAPPY), ("compacted", LZ4), ("compacted", ZSTD),
     ("zipped", SNAPPY), ("zipped", LZ4), ("zipped", ZSTD)],
)  # fmt: skip
def test_ux_4_compression_bombs_are_refused(target: Target, topic: str, codec: int) -> None:
    """Only where the broker looks into a batch can one go off; elsewhere it is stored unseen."""
    with Bystander(target.broker.bootstrap_servers, "bystander") as bystander:
        bombs = _bombs(codec)
        for _ in range(25):
            _bombard(target, topic, bombs)
        # The allocator keeps what each thread once needed, and which threads work is chance: what
        # it keeps has an end, while a leak adds as much in each round.
        for _ in range(_MOST_ROUNDS):
            before = target.resident_bytes()
            for _ in range(10):
                _bombard(target, topic, bombs)
            if target.resident_bytes() - before < GROWTH_BYTES:
                break
    assert bystander.failure is None and bystander.slowest_seconds < PATIENCE_SECONDS
    assert target.growth_bytes(before) < GROWTH_BYTES
    target.check()


def _bombs(codec: int) -> list[bytes]:
    """Batches that unpack to little, to much and to too much, as far as a request can hold them."""
    header = read_header(batch(b"x"))
    made = [bomb(header, codec, mebibytes << 20) for mebibytes in (2, 15, 100)]
    return [each for each in made if len(each) < 1_000_000]


def _bombard(target: Target, topic: str, bombs: list[bytes]) -> None:
    with RawClient(target.broker.bootstrap_servers, timeout_s=60) as client:
        for records in bombs:
            answer = client.call(PRODUCE, 9, produce_request(topic, {0: records}))
            error = answer.responses[0].partition_responses[0].error_code
            assert error == InvalidRecord.code


@pytest.mark.parametrize("magic", [0, 1])
def test_ux_4_old_formats_are_refused(target: Target, magic: int) -> None:
    with RawClient(target.broker.bootstrap_servers) as client:
        answer = client.call(PRODUCE, 9, produce_request("t", {0: legacy(magic)}))
        assert answer.responses[0].partition_responses[0].error_code in (
            InvalidRecord.code,
            CorruptMessage.code,
        )
    target.check()


def _is_closed(client: socket.socket) -> bool:
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True
