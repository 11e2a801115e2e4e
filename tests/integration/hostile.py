"""Frames that no client would send, from a seed: valid ones of every API, and what becomes of them.

`Hostile.frame` gives one frame without its length. Three of five are damaged: cut, flipped, with
counts and lengths that cannot be, with pieces doubled, taken out or put in. What is left whole asks
for strange things by itself (partitions that are not there, batches that claim nonsense).
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Sequence
from typing import Any

from barnabas.protocol.api import (
    ALTER_CONFIGS,
    APIS,
    CREATE_PARTITIONS,
    DELETE_TOPICS,
    FETCH,
    INCREMENTAL_ALTER_CONFIGS,
    PRODUCE,
    Api,
)
from barnabas.protocol.frame import encode_request
from barnabas.protocol.message import Field, Message, WireType
from barnabas.protocol.wire import BOOLEAN, BYTES, FLOAT64, RECORDS, STRING, UUID, Array, Primitive
from barnabas.records.batch import HEADER_BYTES, BatchHeader, read_header, seal
from barnabas.records.compression import compress
from barnabas.records.record import BatchBuilder

TOPICS = ("t", "compacted", "zipped")
"""What exists on the broker that is attacked."""

_NAMES = (*TOPICS, "made-1", "made-2", "made-3", "", "no/such", "x" * 300, "__consumer_offsets")
_LENGTHS = (-1, 0, 1, 0x7F, 0xFFFF, 0x00FFFFFF, 0x7FFFFFFF, -0x80000000, -2, 1 << 28)
_SMALL = {
    "num_partitions", "count", "replication_factor", "max_wait_ms", "timeout_ms", "partition",
    "index", "partition_index", "acks", "partitions", "session_epoch", "isolation_level",
}  # fmt: skip
_CHANGING = (DELETE_TOPICS, CREATE_PARTITIONS, ALTER_CONFIGS, INCREMENTAL_ALTER_CONFIGS)
_CLIENT_ID = "hostile"
_HEADER_BYTES = 10 + len(_CLIENT_ID)  # of a request; mostly it is its message that is damaged
_INT32 = struct.Struct(">i")


class Hostile:
    """An endless source of frames; the same seed gives the same ones."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self._apis = list(APIS.values())
        self._valid: dict[tuple[Api, int], list[bytes]] = {}
        self._batches = _batches()
        self._names = _NAMES

    def frame(self) -> bytes:
        rng = self.random
        whole, header_bytes = self.whole()
        if rng.random() < 0.4:
            return whole
        kept = header_bytes if rng.random() < 0.9 else 0
        damaged = bytearray(whole[kept:])
        for _ in range(rng.choice((1, 1, 1, 2, 5))):
            rng.choice(_DAMAGES)(rng, damaged)
        return whole[:kept] + damaged

    def whole(self) -> tuple[bytes, int]:
        """A frame to be damaged, and how long its header is."""
        rng = self.random
        api = rng.choice((PRODUCE, FETCH, *self._apis))
        return self.valid(api, rng.randint(api.min_version, api.max_version)), _HEADER_BYTES

    def valid(self, api: Api, version: int) -> bytes:
        """A whole request; each kind is made a few times and then taken again."""
        known = self._valid.setdefault((api, version), [])
        if len(known) < (200 if api is PRODUCE else 20):
            # What is attacked must stay as it is, or the attack would soon meet errors alone.
            self._names = _NAMES[len(TOPICS) :] if api in _CHANGING else _NAMES
            request = self._message(api.request, version)
            parts = encode_request(api, version, self.random.getrandbits(31), _CLIENT_ID, request)
            known.append(b"".join(map(bytes, parts))[4:])  # type: ignore[arg-type]
            return known[-1]
        return self.random.choice(known)

    def batch(self) -> bytes:
        """One of the batches; of some the records are damaged under a checksum that is right."""
        batch = self.random.choice(self._batches)
        if self.random.random() < 0.6 or len(batch) <= HEADER_BYTES or batch[16] != 2:
            return batch
        records = bytearray(batch[HEADER_BYTES:])
        for _ in range(self.random.choice((1, 2, 8))):
            self.random.choice(_DAMAGES)(self.random, records)
        return seal(read_header(batch), records)

    def _message(self, cls: type[Message], version: int) -> Message:
        chosen = {}
        for made in cls.fields:
            if version not in made.versions:
                continue
            if made.tag is not None and self.random.random() < 0.7:
                continue
            if version in made.nullable and self.random.random() < 0.1:
                chosen[made.name] = None
            else:
                chosen[made.name] = self._value(made, made.type, version)
        return cls(**chosen)

    def _value(self, made: Field, kind: WireType, version: int) -> Any:
        rng = self.random
        if isinstance(kind, Array):
            count = rng.choice((0, 1, 1, 2, 3))
            return [self._value(made, kind.element, version) for _ in range(count)]
        if not isinstance(kind, Primitive):
            return self._message(kind, version)
        if kind is BOOLEAN:
            return rng.random() < 0.5
        if kind is FLOAT64:
            return rng.uniform(-1, 1)
        if kind is UUID:
            return rng.choice((bytes(16), rng.randbytes(16)))
        if kind is STRING:
            return rng.choice(self._names)
        if kind is RECORDS:
            return self.batch()
        if kind is BYTES:
            return rng.randbytes(rng.randrange(20))
        if made.name in _SMALL:
            return rng.choice((0, 0, 1, 1, 2, -1))
        bits = kind.size * 8
        low, high = -(1 << bits - 1), (1 << bits - 1) - 1
        if not kind.format.islower():
            low, high = 0, (1 << bits) - 1
        return rng.choice((0, 0, 1, low, high, rng.randint(low, high), max(low, -1)))


class Recorded(Hostile):
    """As the other, but what is damaged was once sent by a real client to a real Kafka."""

    def __init__(self, seed: int, recorded: Sequence[bytes]) -> None:
        super().__init__(seed)
        self._recorded = recorded

    def whole(self) -> tuple[bytes, int]:
        frame = self.random.choice(self._recorded)
        client_id_bytes = max(0, int.from_bytes(frame[8:10], "big", signed=True))
        return frame, 10 + client_id_bytes


def _batches() -> list[bytes]:
    """Batches as a producer sends them, and as none does."""
    good = []
    for codec in range(5):
        builder = BatchBuilder(codec)
        for i in range(5):
            builder.append(1_700_000_000_000 + i, b"k%d" % i, bytes(50), (("h", b"x"),))
        good.append(bytes(builder.build()))
    header, plain = read_header(good[0]), good[0][61:]
    changes: list[dict[str, int]] = [
        {"record_count": 0x7FFFFFFF, "last_offset_delta": 0x7FFFFFFE},
        {"record_count": -1, "last_offset_delta": -2},
        {"record_count": 4, "last_offset_delta": 3},
        {"record_count": 6, "last_offset_delta": 5},
        {"base_offset": 1 << 62},
        {"base_timestamp": (1 << 63) - 1, "max_timestamp": (1 << 63) - 1},
        {"base_timestamp": -(1 << 63), "max_timestamp": -(1 << 63)},
        {"producer_id": 0, "producer_epoch": -1, "base_sequence": 0x7FFFFFFF},
        {"producer_id": (1 << 63) - 1, "producer_epoch": 0x7FFF, "base_sequence": 0},
        *({"attributes": attributes} for attributes in (1, 2, 3, 4, 5, 7, 8, 32, 64, -1)),
    ]
    bad = [seal(header._replace(**change), plain) for change in changes]
    bad += [good[0][:n] for n in (0, 1, 17, 40, 61, len(good[0]) - 1)]
    bad += [good[0] + good[1], good[0] + b"\x00", b"\x00" * 100, legacy(0), legacy(1)]
    bad.append(good[0][:17] + b"\x00\x00\x00\x00" + good[0][21:])  # a wrong checksum
    return good + bad + [bomb(header, codec, 1 << 20) for codec in range(1, 5)]


def bomb(header: BatchHeader, codec: int, size_bytes: int) -> bytes:
    """A small batch that unpacks to very much."""
    return seal(header._replace(attributes=codec), compress(codec, bytes(size_bytes)))


def legacy(magic: int) -> bytes:
    """A message of the formats before record batches."""
    body = (
        bytes((magic, 0)) + (b"\x00" * 8 if magic else b"") + b"\xff\xff\xff\xff\x00\x00\x00\x01x"
    )
    return struct.pack(">qiI", 0, len(body) + 4, 0) + body + bytes(40)


# --- damages -------------------------------------------------------------------------------------


def _cut(rng: random.Random, frame: bytearray) -> None:
    del frame[rng.randrange(len(frame) + 1) :]


def _flip(rng: random.Random, frame: bytearray) -> None:
    for _ in range(rng.choice((1, 1, 3, 10))):
        if frame:
            frame[rng.randrange(len(frame))] ^= 1 << rng.randrange(8)


def _count(rng: random.Random, frame: bytearray) -> None:
    """A length or count that cannot be, somewhere."""
    if len(frame) >= 14:
        at = rng.randrange(8, len(frame) - 3)
        frame[at : at + 4] = _INT32.pack(rng.choice(_LENGTHS))


def _varint(rng: random.Random, frame: bytearray) -> None:
    """Compact lengths and tag counts without an end."""
    at = rng.randrange(len(frame) + 1)
    frame[at:at] = rng.choice(
        (b"\xff" * 4 + b"\x0f", b"\xff" * 12, b"\x80" * 5 + b"\x00", b"\xff\x7f")
    )


def _double(rng: random.Random, frame: bytearray) -> None:
    if frame:
        at = rng.randrange(len(frame))
        piece = frame[at : at + rng.randrange(1, 60)]
        frame[at:at] = piece * rng.choice((1, 1, 2, 20))


def _take_out(rng: random.Random, frame: bytearray) -> None:
    if frame:
        at = rng.randrange(len(frame))
        del frame[at : at + rng.randrange(1, 20)]


def _put_in(rng: random.Random, frame: bytearray) -> None:
    at = rng.randrange(len(frame) + 1)
    frame[at:at] = rng.randbytes(rng.randrange(1, 40))


def _tags(rng: random.Random, frame: bytearray) -> None:
    """Tagged fields within tagged fields, at the end, where a flexible message has its own."""
    if frame:
        frame[-1:] = b"\x05" + b"".join(bytes((tag, 4, 1, 0, 2, 0)) for tag in range(5)) * 3


def _key(rng: random.Random, frame: bytearray) -> None:
    """Another API or version in front of the same message."""
    if len(frame) >= 4:
        frame[rng.randrange(4)] = rng.randrange(256)


Damage = Callable[[random.Random, bytearray], None]
_DAMAGES: tuple[Damage, ...] = (
    _cut, _flip, _flip, _flip, _count, _count, _varint, _double, _take_out, _put_in, _tags, _key,
)  # fmt: skip
