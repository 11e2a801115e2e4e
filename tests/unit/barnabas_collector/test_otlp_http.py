"""LG-2: the bodies of requests over HTTP have limits, however they are compressed."""

from __future__ import annotations

import gzip
import zlib

import pytest

from barnabas_collector.otlp_http import Body
from barnabas_collector.otlp_messages import MALFORMED, TOO_LARGE, Refusal


def whole(*parts: bytes, is_gzip: bool) -> bytes:
    body = Body(is_gzip=is_gzip, most_bytes=1_000)
    grown = [body.add(part) for part in parts]
    assert sum(grown) == len(body.content)
    return body.end()


def test_a_body_may_arrive_in_parts() -> None:
    text = bytes(range(256)) * 3
    assert whole(text[:100], text[100:], is_gzip=False) == text
    packed = gzip.compress(text)
    assert whole(packed, is_gzip=True) == text
    assert whole(*(packed[at : at + 1] for at in range(len(packed))), is_gzip=True) == text


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (gzip.compress(b"x" * 1_001, mtime=0), TOO_LARGE),
        (gzip.compress(b"\0" * (64 << 20), mtime=0), TOO_LARGE),
        (gzip.compress(b"text", mtime=0)[:-1], MALFORMED),
        (gzip.compress(b"text", mtime=0) + b"more", MALFORMED),
        (zlib.compress(b"text"), MALFORMED),
        (b"", MALFORMED),
    ],
)
def test_compressed_bodies_that_are_refused(data: bytes, reason: str) -> None:
    for parts in ([data], [data[:5], data[5:]]):
        with pytest.raises(Refusal) as caught:
            whole(*parts, is_gzip=True)
        assert caught.value.reason == reason


def test_a_body_has_a_limit() -> None:
    assert len(whole(b"x" * 1_000, is_gzip=False)) == 1_000
    with pytest.raises(Refusal) as caught:
        whole(b"x" * 1_000, b"x", is_gzip=False)
    assert caught.value.reason == TOO_LARGE
