"""Bundles of messages as record batches: encoded in one go, like the lines of files. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from barnabas.records.varint import VARINTS
from barnabas_collector.bundle import Bundle
from barnabas_collector.encoding import encoded_batch


def pack(bundles: Iterable[Bundle], most_bytes: int) -> Iterator[list[Bundle]]:
    """The bundles of each batch: at most `most_bytes` of records, but at least one message."""
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
    """A whole batch, without offsets, a producer or sequences."""
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
                b"\0\0",  # attributes, and the timestamp's difference from the first one's
                number,
                key,
                text_length,
                text,
                headers,
            )
            count += 1
    return encoded_batch(parts, count, codec, now_ms)
