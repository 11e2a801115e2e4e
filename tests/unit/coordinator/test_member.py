"""A member: its names, and what it votes for."""

from __future__ import annotations

from barnabas.coordinator.member import Member, protocols_of, short_name
from barnabas.protocol.messages.join_group import JoinGroupRequestProtocol


def test_a_request_is_copied_and_each_name_counts_once() -> None:
    frame = bytearray(b"ab")
    wanted = [
        JoinGroupRequestProtocol(name="range", metadata=memoryview(frame)[:1]),
        JoinGroupRequestProtocol(name="range", metadata=memoryview(frame)[1:]),
        JoinGroupRequestProtocol(name="sticky", metadata=b""),
    ]
    protocols = protocols_of(wanted)
    frame[:] = b"xx"
    assert protocols == (("range", b"a"), ("sticky", b""))
    assert all(type(data) is bytes for _, data in protocols)


def test_names_and_votes() -> None:
    member = Member("g", "c-1", None, (("sticky", b"s"), ("range", b"r")))
    assert member.name == "c-1"
    assert member.vote({"range"}) == "range" and member.vote({"range", "sticky"}) == "sticky"
    assert member.subscription("range") == b"r" and member.subscription("other") == b""
    static = Member("g", "i-1", "i", ())
    static.rename("i-2")
    assert (static.name, static.member_id, static.timer.member_id) == ("i", "i-2", "i-2")


def test_names_for_people() -> None:
    assert short_name("rdkafka-896c9e73-149a-4d1f-b16e-29cef12c5930") == "rdkafka-896c9e73"
    assert short_name("instance-1") == "instance-1"
    assert short_name("x" * 60) == "x" * 60
