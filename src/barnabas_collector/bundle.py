"""Groups received messages that have the same key and headers, and encodes them together as record
batches.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from barnabas.records.record import Headers, encoded_headers, nullable
from barnabas.records.varint import VARINTS
from barnabas_collector.encoding import encoded_batch
from barnabas_collector.redaction import Redact

_MESSAGE_BYTES = 64  # the size of a message without its text
_BUNDLE_BYTES = 512
_RECORD_BYTES = 17  # maximum for the other parts: lengths, attributes and differences


class Origin:
    """Holds a key and headers that are encoded once and shared by many messages."""

    __slots__ = ("encoded_headers", "encoded_key", "headers", "key", "record_bytes")

    def __init__(self, key: bytes, headers: Headers) -> None:
        self.key = key
        self.headers = headers
        self.encoded_key = nullable(key)
        self.encoded_headers = encoded_headers(headers)
        self.record_bytes = _RECORD_BYTES + len(self.encoded_key) + len(self.encoded_headers)

    def with_header(self, name: str, value: bytes) -> Origin:
        return Origin(self.key, (*self.headers, (name, value)))


class Awaited(Protocol):
    """Receives the outcome of a message."""

    def on_stored(self) -> None:
        """Called once the brokers have acknowledged the message."""
        ...

    def on_refused(self, why: Exception) -> None:
        """Called if the brokers will never accept the message."""
        ...


class Bundle:
    """Holds messages in order of arrival. A truncated message, or a message whose sender is waiting
    for the outcome, gets its own bundle."""

    __slots__ = ("awaited", "came_bytes", "held_bytes", "origin", "record_bytes", "texts")

    def __init__(
        self,
        origin: Origin,
        texts: Sequence[bytes],
        came_bytes: int | None = None,
        awaited: Awaited | None = None,
    ) -> None:
        """`came_bytes` is the original size of a truncated message. `awaited` is given if the
        sender keeps the message until it learns the outcome. The secrets in such a message have
        already been replaced.
        """
        self.awaited = awaited
        size_bytes = sum(map(len, texts))
        self.origin = origin
        self.texts = texts
        self.came_bytes = size_bytes if came_bytes is None else came_bytes
        self.held_bytes = size_bytes + _MESSAGE_BYTES * len(texts) + _BUNDLE_BYTES
        self.record_bytes = size_bytes + origin.record_bytes * len(texts)  # the maximum

    @property
    def count(self) -> int:
        return len(self.texts)

    @property
    def is_cut(self) -> bool:
        return self.count == 1 and self.came_bytes > len(self.texts[0])

    def without_secrets(self, redact: Redact) -> Bundle:
        """Return these messages with their secrets replaced."""
        lost_bytes = self.came_bytes - len(self.texts[0]) if self.is_cut else 0
        texts = [redact(text) for text in self.texts]
        return Bundle(self.origin, texts, sum(map(len, texts)) + lost_bytes)

    def pieces(self, most_bytes: int) -> Iterator[Bundle]:
        """Split the bundle into bundles of at least one message and at most `most_bytes` of
        records."""
        if self.record_bytes <= most_bytes or self.count == 1:
            yield self
            return
        start = size_bytes = 0
        for at, text in enumerate(self.texts):
            record_bytes = len(text) + self.origin.record_bytes
            if at > start and size_bytes + record_bytes > most_bytes:
                yield Bundle(self.origin, self.texts[start:at])
                start, size_bytes = at, 0
            size_bytes += record_bytes
        yield Bundle(self.origin, self.texts[start:])


def pack(bundles: Iterable[Bundle], most_bytes: int) -> Iterator[list[Bundle]]:
    """Group bundles into batches of at least one message and at most `most_bytes` of records."""
    batch: list[Bundle] = []
    size_bytes = 0
    for bundle in bundles:
        for piece in bundle.pieces(most_bytes):
            if batch and size_bytes + piece.record_bytes > most_bytes:
                yield batch
                batch, size_bytes = [], 0
            batch.append(piece)
            size_bytes += piece.record_bytes
    if batch:
        yield batch


def encode_bundles(batch: Sequence[Bundle], codec: int, now_ms: int) -> bytes:
    """Encode a whole batch, without offsets, producer or sequence numbers."""
    varints = VARINTS
    parts: list[bytes] = []
    count = 0
    for bundle in batch:
        key, headers = bundle.origin.encoded_key, bundle.origin.encoded_headers
        fixed_bytes = 2 + len(key) + len(headers)
        for text in bundle.texts:
            length = len(text)
            number = varints[count]
            text_length = varints[length]
            length += fixed_bytes + len(number) + len(text_length)
            parts += (
                varints[length],
                b"\0\0",  # attributes, and the timestamp relative to the first record's
                number,
                key,
                text_length,
                text,
                headers,
            )
            count += 1
    return encoded_batch(parts, count, codec, now_ms)
