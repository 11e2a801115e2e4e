"""The messages of a stream of syslog (RFC 6587), whatever pieces it comes in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas_collector.syslog_framing import MOST_BYTES, Frame, SyslogFraming, datagram

STREAMS = st.lists(
    st.one_of(
        st.binary(max_size=12),
        st.integers(0, 30).map(b"%d ".__mod__),
        st.sampled_from([b"\n", b"\0", b"<34>", b"5 <1>ab", b"<34>1 - a\n", b"1234567890 "]),
    ),
    max_size=12,
).map(b"".join)


def all_of(*pieces: bytes, most_bytes: int = MOST_BYTES) -> list[Frame]:
    framing = SyslogFraming(most_bytes)
    found = [frame for piece in pieces for frame in framing.cut(piece)]
    return found + framing.last()


def texts(*pieces: bytes) -> list[bytes]:
    return [frame.text for frame in all_of(*pieces)]


@given(STREAMS, st.data())
def test_pieces_do_not_matter(stream: bytes, data: st.DataObject) -> None:
    """UX-4: any bytes, in any pieces."""
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert all_of(*pieces, most_bytes=8) == all_of(stream, most_bytes=8)


@given(st.lists(st.tuples(st.binary(max_size=20), st.booleans()), max_size=8))
def test_what_was_framed_is_found_again(messages: list[tuple[bytes, bool]]) -> None:
    """A connection may mix both kinds of frames."""
    stream = b""
    expected = []
    for body, is_counted in messages:
        text = b"<14>" + body
        if not is_counted:
            text = text.replace(b"\n", b" ").replace(b"\0", b" ")
        stream += b"%d %s" % (len(text), text) if is_counted else text + b"\n"
        expected.append(text)
    assert texts(stream) == expected


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (b"<34>a\n<35>b\n", [b"<34>a", b"<35>b"]),
        (b"<34>a\0<35>b\0", [b"<34>a", b"<35>b"]),
        (b"6 <34>a\n5 <35>b", [b"<34>a\n", b"<35>b"]),
        (b"12 monkeys\n2026-11-24 no priority\n", [b"12 monkeys", b"2026-11-24 no priority"]),
        (b"6 <34>ab9 no number", [b"<34>ab", b"no number"]),
        (b"\n\n\0<34>a\n", [b"<34>a"]),
        (b"<34>without an end", [b"<34>without an end"]),
        (b"17", [b"17"]),
        (b"9999999999 <34>a\nb", [b"9999999999 <34>a", b"b"]),
    ],
)
def test_which_frame_it_is(stream: bytes, expected: list[bytes]) -> None:
    assert texts(stream) == expected


def test_what_is_too_long_is_cut_and_the_next_one_is_found() -> None:
    for stream in (b"<1>" + b"x" * 97 + b"\n<2>b\n", b"100 <1>" + b"x" * 97 + b"4 <2>b"):
        assert all_of(stream, most_bytes=10) == [Frame(b"<1>xxxxxxx", 100), Frame(b"<2>b", 4)]
    assert all_of(b"999999999 <1>the end") == [Frame(b"<1>the end", 999_999_999)]


def test_a_datagram_is_one_message() -> None:
    assert datagram(b"<1>a\nb\n") == [Frame(b"<1>a\nb", 6)]
    assert datagram(b"<1>a\0") == [Frame(b"<1>a", 4)] and datagram(b"\n") == []
